// SPDX-License-Identifier: Apache-2.0
#include "plan/command.hpp"

#include <fmt/format.h>

namespace kb::plan {

namespace {

/// Room for a usual command, so that it is not moved while it grows.
constexpr std::size_t kUsualBytes = 1000;
constexpr std::size_t kUsualWords = 48;

void add_preprocessor_flags(Words& command, const CompileRequest& request) {
    for (const std::string& definition : request.definitions) {
        command.add("-D", definition);
    }
    for (const std::string& dir : request.include) {
        command.add("-I", dir);
    }
    for (const std::string& dir : request.system_include) {
        command.add("-isystem");
        command.add(dir);
    }
}

void add_source(Words& command, const CompileRequest& request) {
    command.add_all(request.flags);
    command.add("-c");
    command.add(std::string{request.source_root}.append("/"), request.source.text());
}

void add_standard(Words& command, std::uint32_t cxx_standard) {
    command.add("-std=c++", std::to_string(cxx_standard));
}

Words cxx_command(const CompileRequest& request) {
    Words command;
    command.reserve(kUsualBytes, kUsualWords);
    command.add(request.cxx);
    add_standard(command, request.cxx_standard);
    command.add("-O3");
    command.add("-DNDEBUG");
    command.add("-fPIC");
    // Unique symbols would be shared between all kernels of a process.
    command.add("-fno-gnu-unique");
    command.add(request.seed);
    add_preprocessor_flags(command, request);
    add_source(command, request);
    return command;
}

Words cuda_command(const CompileRequest& request) {
    Words command;
    command.reserve(kUsualBytes, kUsualWords);
    command.add(backend::cuda_mount(request.toolkit.version), "/bin/nvcc");
    if (const auto& own = request.toolkit.host_compiler) {
        const std::string name = fmt::format("{}-{}", request.cxx, own->to_text());
        command.add("-ccbin=", name);
    } else {
        command.add("-ccbin=", request.cxx);
    }
    add_standard(command, request.cxx_standard);
    command.add("-O3");
    command.add("-DNDEBUG");
    command.add("-Xcompiler=-fPIC,-fno-gnu-unique,", request.seed);
    const backend::BackendRules& rules = backend::rules_of(request.toolkit.backend);
    for (const std::string_view flag : rules.device_flags) {
        command.add(flag);
    }
    command.add_all(rules.arch_flags(request.archs));
    add_preprocessor_flags(command, request);
    add_source(command, request);
    return command;
}

/// clang itself, as hipcc would call it. It finds the headers and libraries of g++ below /usr, and
/// its device libraries below the ROCm root.
Words hip_command(const CompileRequest& request) {
    const std::string root = backend::rocm_mount(request.toolkit.version);
    Words command;
    command.reserve(kUsualBytes, kUsualWords);
    command.add(root, "/bin/clang++");
    // Else it looks beside the program that its launcher starts.
    command.add("-no-canonical-prefixes");
    command.add("-x");
    command.add("hip");
    command.add("--rocm-path=", root);
    add_standard(command, request.cxx_standard);
    command.add("-O3");
    command.add("-DNDEBUG");
    command.add("-fPIC");
    command.add_all(backend::rules_of(request.toolkit.backend).arch_flags(request.archs));
    add_preprocessor_flags(command, request);
    add_source(command, request);
    return command;
}

} // namespace

Words compile_command(const CompileRequest& request) {
    switch (request.kind) {
    case backend::SourceKind::cxx:
        return cxx_command(request);
    case backend::SourceKind::cuda:
        return cuda_command(request);
    case backend::SourceKind::hip:
        return hip_command(request);
    case backend::SourceKind::sycl:
    case backend::SourceKind::metal:
    case backend::SourceKind::header:
    case backend::SourceKind::other:
        break;
    }
    return {};
}

Words translate_command(const Version& rocm, const std::vector<RelPath>& files) {
    Words command;
    command.add(backend::rocm_mount(rocm), "/bin/cuda-to-hip-1");
    command.add(backend::kSourceMount);
    command.add(backend::kTranslatedMount);
    for (const RelPath& file : files) {
        command.add(file.text());
    }
    return command;
}

Words link_command(const LinkRequest& request) {
    Words command;
    command.reserve(kUsualBytes, kUsualWords);
    command.add(request.cxx);
    command.add("-shared");
    command.add("-o");
    command.add(request.output);
    for (const std::string_view object : request.objects) {
        command.add(object);
    }
    for (const std::string& dir : request.library_dirs) {
        command.add("-L", dir);
    }
    // torch is loaded with its names kept local: only what stands in DT_NEEDED is searched.
    command.add("-Wl,--no-as-needed");
    for (const std::string& library : request.needed) {
        command.add("-l", library);
    }
    command.add("-Wl,--as-needed");
    for (const std::string& library : request.libraries) {
        command.add("-l", library);
    }
    // What the stubs add to the runtime libraries stays inside.
    command.add("-Wl,--exclude-libs,",
                "libstdc++_nonshared.a:libkbcompat.a:libc_nonshared.a:libgcc.a:libcudart_static.a");
    for (const std::string_view flag :
         {"-Wl,-z,noexecstack", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,--build-id=sha1"}) {
        command.add(flag);
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
