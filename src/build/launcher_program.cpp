// SPDX-License-Identifier: Apache-2.0
#include "build/tokens.hpp"

// The launcher's bytes as the assembler includes them: a string literal of 800 kB would cost the
// compiler seconds.
__asm__(".section .rodata\n"
        ".global kb_launcher_begin\n"
        ".global kb_launcher_end\n"
        ".hidden kb_launcher_begin\n"
        ".hidden kb_launcher_end\n"
        ".balign 16\n"
        "kb_launcher_begin:\n"
        ".incbin \"" KB_LAUNCHER_PATH "\"\n"
        "kb_launcher_end:\n"
        ".byte 0\n"
        ".previous\n");

extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): names of the assembler above
extern const char kb_launcher_begin[];
// NOLINTNEXTLINE(readability-identifier-naming): names of the assembler above
extern const char kb_launcher_end[];
}

namespace kb::build {

std::string_view launcher_program() {
    return {kb_launcher_begin, static_cast<std::size_t>(kb_launcher_end - kb_launcher_begin)};
}

} // namespace kb::build
