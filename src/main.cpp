// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"
#include "sys/environment.hpp"
#include "sys/signals.hpp"

#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

int main(int argc, char** argv) {
    using namespace kb;
    cli::StandardTerminal terminal;
    try {
        const sys::InterruptGuard guard;
        const sys::EnvironmentMap environment = sys::read_environment();
        std::error_code ignored;
        const cli::Services services{.fs = sys::real_file_system(),
                                     .processes = sys::real_process_runner(),
                                     .clock = sys::real_clock(),
                                     .environment = environment,
                                     .terminal = terminal,
                                     .current_directory = std::filesystem::current_path(ignored),
                                     .self =
                                         std::filesystem::read_symlink("/proc/self/exe", ignored)};
        const cli::ExitCode code =
            cli::run(std::vector<std::string>{argv + 1, argv + argc}, services);
        if (!terminal.flush()) {
            terminal.err("error: standard output could not be written\n");
            return std::to_underlying(cli::ExitCode::failed);
        }
        return std::to_underlying(code);
    } catch (const std::exception& unexpected) {
        terminal.err(std::string{"kernel-builder: bug: "} + unexpected.what() + "\n");
    } catch (...) {
        terminal.err("kernel-builder: bug: an unknown exception\n");
    }
    return std::to_underlying(cli::ExitCode::bug);
}
