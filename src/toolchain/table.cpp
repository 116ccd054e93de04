// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "toolchain/provider.hpp"

#include <fmt/format.h>

#include <array>

namespace kb::toolchain {

std::span<const Provider> providers() {
    static const std::array<Provider, 7> kTable{wheel_provider(),
                                                deb_provider(),
                                                conda_provider(),
                                                archive_provider(),
                                                git_provider(),
                                                host_provider(),
                                                stub_provider()};
    return kTable;
}

Result<const Provider*> provider_of(const backend::Requirement& requirement) {
    for (const Provider& provider : providers()) {
        if (provider.name != requirement.provider) {
            continue;
        }
        if (const std::string refusal = provider.refusal(requirement); !refusal.empty()) {
            return Error{.code = ErrorCode::unsupported,
                         .message = fmt::format("'{}': {}", requirement.id(), refusal)};
        }
        return &provider;
    }
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("'{}': nothing provides '{}' on this machine yet",
                                        requirement.id(),
                                        requirement.provider)};
}

Result<sys::ProcessResult> run_tool(const Machine& machine,
                                    std::vector<std::string> argv,
                                    const sys::Path& working_directory) {
    sys::ProcessSpec spec{.argv = std::move(argv)};
    spec.environment = machine.environment;
    (*spec.environment)["LC_ALL"] = "C"; // messages are read
    spec.working_directory = working_directory;
    KB_TRY(sys::ProcessResult result, machine.processes.run(spec));
    if (result.status.kind == sys::ExitStatus::Kind::interrupted) {
        return Error{.code = ErrorCode::cancelled, .message = "interrupted"};
    }
    return result;
}

} // namespace kb::toolchain
