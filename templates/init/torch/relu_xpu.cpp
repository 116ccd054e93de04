// SYCL. Nothing of torch in here: see relu.h.
#include "../{{ module }}_common/relu.h"

#include <sycl/ext/oneapi/bfloat16.hpp>
#include <sycl/sycl.hpp>

namespace {{ module }} {

namespace {

template <typename T>
void launch(const ReluArgs& args, sycl::queue& queue) {
    const T* in = static_cast<const T*>(args.in);
    T* out = static_cast<T*>(args.out);
    queue.parallel_for(sycl::range<1>{static_cast<std::size_t>(args.count)}, [=](sycl::id<1> i) {
        const float x = static_cast<float>(in[i]);
        out[i] = static_cast<T>(x < 0.0F ? 0.0F : x);
    });
}

} // namespace

void relu_xpu(const ReluArgs& args, void* queue) {
    if (args.count == 0) {
        return;
    }
    sycl::queue& sycl_queue = *static_cast<sycl::queue*>(queue);
    switch (args.dtype) {
    case DType::f32:
        return launch<float>(args, sycl_queue);
    case DType::f16:
        return launch<sycl::half>(args, sycl_queue);
    case DType::bf16:
        return launch<sycl::ext::oneapi::bfloat16>(args, sycl_queue);
    }
}

} // namespace {{ module }}
