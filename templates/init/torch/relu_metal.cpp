// The shaders travel as source: torch compiles them for the GPU at hand when the operator is first
// called.
#include "../{{ module }}_common/relu.h"

namespace {{ module }} {

const char* const kReluShaders = R"METAL(
#include <metal_stdlib>
using namespace metal;

#define RELU(T)                                                                   \
    kernel void relu_##T(device T* out [[buffer(0)]],                             \
                         device const T* in [[buffer(1)]],                        \
                         uint i [[thread_position_in_grid]]) {                    \
        const float x = float(in[i]);                                             \
        out[i] = T(x < 0.0f ? 0.0f : x);                                          \
    }

RELU(float)
RELU(half)
RELU(bfloat)
)METAL";

} // namespace {{ module }}
