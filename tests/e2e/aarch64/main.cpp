// SPDX-License-Identifier: Apache-2.0
// main LIBRARY: calls arm_relu::relu_cpu of a library that was compiled for aarch64.
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>

namespace arm_relu {

// As in the kernel's own header.
enum class DType { f32, f16, bf16 };

struct ReluArgs {
    void* out;
    const void* in;
    std::int64_t count;
    DType dtype;
};

} // namespace arm_relu

int main(int, char** argv) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::printf("%s\n", dlerror());
        return 1;
    }
    using Function = void (*)(const arm_relu::ReluArgs&, std::int64_t, std::int64_t);
    const auto relu =
        reinterpret_cast<Function>(dlsym(library, "_ZN8arm_relu8relu_cpuERKNS_8ReluArgsEll"));
    if (relu == nullptr) {
        std::printf("%s\n", dlerror());
        return 1;
    }
    const float in[6] = {-1.0F, 1.5F, -0.5F, 2.0F, -3.0F, 3.0F};
    float out[6] = {};
    relu({out, in, 6, arm_relu::DType::f32}, 0, 6);
    std::printf("relu %g %g %g %g %g %g\n", out[0], out[1], out[2], out[3], out[4], out[5]);
    return 0;
}
