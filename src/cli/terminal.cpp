// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace kb::cli {

void StandardTerminal::out(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

void StandardTerminal::err(std::string_view text) {
    // Order between the two streams matters to a reader of one log.
    std::fflush(stdout);
    std::fwrite(text.data(), 1, text.size(), stderr);
}

bool StandardTerminal::is_interactive() const {
    return ::isatty(STDERR_FILENO) == 1;
}

std::size_t StandardTerminal::width() const {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return 80;
    }
    return size.ws_col;
}

bool StandardTerminal::flush() {
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

} // namespace kb::cli
