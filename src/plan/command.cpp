// SPDX-License-Identifier: Apache-2.0
#include "plan/command.hpp"

#include "backend/mounts.hpp"

#include <fmt/format.h>

namespace kb::plan {

namespace {

constexpr std::string_view kCxx = "/usr/bin/g++";

using Strings = std::vector<std::string>;

void append(Strings& to, const Strings& from) {
    to.insert(to.end(), from.begin(), from.end());
}

/// With room for all its words and for the output, so that it is not moved while it grows.
Strings empty_command(const CompileRequest& request) {
    constexpr std::size_t kFixedWords = 16;
    Strings command;
    command.reserve(kFixedWords + request.definitions.size() + request.include.size() +
                    2 * request.system_include.size() + request.flags.size());
    return command;
}

void append_preprocessor_flags(Strings& command, const CompileRequest& request) {
    for (const std::string& definition : request.definitions) {
        command.push_back("-D" + definition);
    }
    for (const std::string& dir : request.include) {
        command.push_back("-I" + dir);
    }
    for (const std::string& dir : request.system_include) {
        command.emplace_back("-isystem");
        command.push_back(dir);
    }
}

void append_source(Strings& command, const CompileRequest& request) {
    append(command, request.flags);
    command.emplace_back("-c");
    command.push_back(std::string{backend::kSourceMount}.append("/").append(request.source.text()));
}

Strings cxx_command(const CompileRequest& request) {
    Strings command = empty_command(request);
    command.emplace_back(kCxx);
    command.push_back(fmt::format("-std=c++{}", request.cxx_standard));
    command.emplace_back("-O3");
    command.emplace_back("-DNDEBUG");
    command.emplace_back("-fPIC");
    // Unique symbols would be shared between all kernels of a process.
    command.emplace_back("-fno-gnu-unique");
    command.push_back(request.seed);
    append_preprocessor_flags(command, request);
    append_source(command, request);
    return command;
}

Strings cuda_command(const CompileRequest& request) {
    Strings command = empty_command(request);
    command.push_back(backend::cuda_mount(request.toolkit.version) + "/bin/nvcc");
    command.push_back(fmt::format("-ccbin={}", kCxx));
    command.push_back(fmt::format("-std=c++{}", request.cxx_standard));
    command.emplace_back("-O3");
    command.emplace_back("-DNDEBUG");
    command.push_back("-Xcompiler=-fPIC,-fno-gnu-unique," + request.seed);
    const backend::BackendRules& rules = backend::rules_of(request.toolkit.backend);
    command.insert(command.end(), rules.device_flags.begin(), rules.device_flags.end());
    append(command, rules.arch_flags(request.archs));
    append_preprocessor_flags(command, request);
    append_source(command, request);
    return command;
}

} // namespace

std::vector<std::string> compile_command(const CompileRequest& request) {
    switch (request.kind) {
    case backend::SourceKind::cxx:
        return cxx_command(request);
    case backend::SourceKind::cuda:
        return cuda_command(request);
    case backend::SourceKind::hip:
    case backend::SourceKind::sycl:
    case backend::SourceKind::metal:
    case backend::SourceKind::header:
    case backend::SourceKind::other:
        break;
    }
    return {};
}

std::vector<std::string> link_command(const LinkRequest& request) {
    constexpr std::size_t kFixedWords = 11;
    Strings command;
    command.reserve(kFixedWords + request.objects.size() + request.library_dirs.size() +
                    request.needed.size() + request.libraries.size());
    command.emplace_back(kCxx);
    command.emplace_back("-shared");
    command.emplace_back("-o");
    command.push_back(request.output);
    append(command, request.objects);
    for (const std::string& dir : request.library_dirs) {
        command.push_back("-L" + dir);
    }
    // torch is loaded with its names kept local: only what stands in DT_NEEDED is searched.
    command.emplace_back("-Wl,--no-as-needed");
    for (const std::string& library : request.needed) {
        command.push_back("-l" + library);
    }
    command.emplace_back("-Wl,--as-needed");
    for (const std::string& library : request.libraries) {
        command.push_back("-l" + library);
    }
    // What the stubs add to the runtime libraries stays inside.
    constexpr std::string_view kInside = "libstdc++_nonshared.a:libkbcompat.a:libc_nonshared.a:"
                                         "libgcc.a:libcudart_static.a";
    command.push_back(std::string{"-Wl,--exclude-libs,"}.append(kInside));
    for (const std::string_view flag :
         {"-Wl,-z,noexecstack", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,--build-id=sha1"}) {
        command.emplace_back(flag);
    }
    return command;
}

std::vector<std::string> torch_include(std::string_view mount) {
    std::vector<std::string> dirs;
    dirs.reserve(2);
    for (const std::string_view dir : {"/include", "/include/torch/csrc/api/include"}) {
        dirs.push_back(std::string{mount}.append(dir));
    }
    return dirs;
}

} // namespace kb::plan
