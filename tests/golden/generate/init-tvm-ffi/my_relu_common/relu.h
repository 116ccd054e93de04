// What the binding and the kernels of all backends agree on. Nothing of torch in here: kernel files
// are compiled once and serve every torch version.
#pragma once

#include <cstdint>

namespace my_relu {

enum class DType { f32, f16, bf16 };

/// out[i] = max(in[i], 0) for i < count. `out` and `in` are contiguous, of the same type, and are
/// either the same memory or do not overlap. A NaN stays a NaN.
struct ReluArgs {
    void* out;
    const void* in;
    std::int64_t count;
    DType dtype;
};

/// Elements [begin, end) on the calling thread; ranges may run in parallel.
void relu_cpu(const ReluArgs& args, std::int64_t begin, std::int64_t end);
/// Enqueues on `stream` (a cudaStream_t or hipStream_t) of the current device. Throws
/// std::runtime_error when the launch is refused.
void relu_cuda(const ReluArgs& args, void* stream);

} // namespace my_relu
