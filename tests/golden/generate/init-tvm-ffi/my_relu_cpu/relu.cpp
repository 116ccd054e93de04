// The readable version: it says what the kernel computes, and the tests compare the others with it.
#include "../my_relu_common/relu.h"
#include "float16.h"

namespace my_relu {

namespace {

/// The maths, in fp32 whatever the type in memory.
float relu(float x) { return x < 0.0F ? 0.0F : x; }

template <typename T>
void relu_range(const ReluArgs& args, std::int64_t begin, std::int64_t end) {
    const T* in = static_cast<const T*>(args.in);
    T* out = static_cast<T*>(args.out);
    for (std::int64_t i = begin; i < end; ++i) {
        out[i] = from_float<T>(relu(to_float(in[i])));
    }
}

} // namespace

void relu_cpu(const ReluArgs& args, std::int64_t begin, std::int64_t end) {
    switch (args.dtype) {
    case DType::f32:
        return relu_range<float>(args, begin, end);
    case DType::f16:
        return relu_range<Half>(args, begin, end);
    case DType::bf16:
        return relu_range<BFloat16>(args, begin, end);
    }
}

} // namespace my_relu
