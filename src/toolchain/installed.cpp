// SPDX-License-Identifier: Apache-2.0
#include "toolchain/installed.hpp"

#include "base/text.hpp"
#include "digest/key_file.hpp"
#include "plan/build_key.hpp"
#include "toolchain/package.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::toolchain {
namespace {

using backend::Requirement;

/// One file that is taken: where it is, and its path in the tree.
struct Taken {
    sys::Path from{};
    std::string to{};
    sys::FileInfo info{};
};

/// Programs of bin/ that a compilation runs; profilers and debuggers stay outside.
constexpr std::array<std::string_view, 9> kPrograms{
    "nvcc", "cudafe++", "cicc", "ptxas", "fatbinary", "nvlink", "bin2c", "cuobjdump", "cu++filt"};

bool is_runtime(std::string_view name) {
    return name.starts_with("libcudart.so") || name == "libcudart_static.a" ||
           name == "libcudadevrt.a" || name.starts_with("libnvvm.so");
}

class Taker {
public:
    Taker(const sys::Path& directory, sys::FileSystem& fs) : directory_{directory}, fs_{fs} {}

    Result<std::vector<Taken>> list();

private:
    Result<void> add_file(const sys::Path& from, std::string to);
    Result<void> add_folder(std::string_view folder);

    const sys::Path& directory_;
    sys::FileSystem& fs_;
    std::vector<Taken> taken_{};
};

/// Links count as what they lead to: an installation is full of them, a tree needs none.
Result<void> Taker::add_file(const sys::Path& from, std::string to) {
    KB_TRY(const sys::FileInfo info, fs_.stat(from, sys::FollowLinks::yes));
    if (info.type != sys::FileType::regular) {
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format("'{}' leads to no file; toolkits with folders behind "
                                            "links cannot be taken",
                                            from.string())};
    }
    taken_.push_back({.from = from, .to = std::move(to), .info = info});
    return {};
}

Result<void> Taker::add_folder(std::string_view folder) {
    const sys::Path root = directory_ / folder;
    KB_TRY(const auto entries, sys::walk(fs_, root));
    for (const sys::WalkEntry& entry : entries) {
        if (entry.info.type != sys::FileType::directory) {
            KB_TRY(add_file(root / entry.path.text(),
                            fmt::format("{}/{}", folder, entry.path.text())));
        }
    }
    return {};
}

Result<std::vector<Taken>> Taker::list() {
    for (const std::string_view program : kPrograms) {
        const sys::Path path = directory_ / "bin" / program;
        if (sys::exists(fs_, path)) {
            KB_TRY(add_file(path, fmt::format("bin/{}", program)));
        }
    }
    for (const std::string_view folder : {"bin/crt", "include", "nvvm"}) {
        if (sys::exists(fs_, directory_ / folder)) {
            KB_TRY(add_folder(folder));
        }
    }
    const bool wide = sys::exists(fs_, directory_ / "lib64");
    const sys::Path libraries = directory_ / (wide ? "lib64" : "lib");
    KB_TRY(const auto names, fs_.list(libraries));
    for (const sys::DirEntry& name : names) {
        if (is_runtime(name.name)) {
            KB_TRY(add_file(libraries / name.name, fmt::format("lib/{}", name.name)));
        }
    }
    std::ranges::sort(taken_, {}, &Taken::to);
    return std::move(taken_);
}

/// "#define CUDA_VERSION 12080"
Result<Version> version_of(const sys::Path& directory, sys::FileSystem& fs) {
    const auto header = fs.read_file(directory / "include/cuda.h", 16U << 20U);
    if (!header || !sys::exists(fs, directory / "bin/nvcc")) {
        return Error{.code = ErrorCode::not_found,
                     .message =
                         fmt::format("'{}' is no CUDA toolkit: it has no {}; name the folder "
                                     "that holds bin/ and include/",
                                     directory.string(),
                                     header ? "'bin/nvcc'" : "'include/cuda.h'")};
    }
    constexpr std::string_view kMark = "#define CUDA_VERSION ";
    const std::size_t at = header->find(kMark);
    std::optional<std::uint64_t> number;
    if (at != std::string::npos) {
        const std::string_view rest = std::string_view{*header}.substr(at + kMark.size());
        number = parse_unsigned(trim(rest.substr(0, rest.find_first_of("\r\n"))));
    }
    if (!number) {
        return Error{.code = ErrorCode::corrupt,
                     .message =
                         fmt::format("'{}/include/cuda.h' tells no version", directory.string())};
    }
    return Version{{*number / 1000, *number % 1000 / 10}};
}

/// Equal as long as nobody touched a file, without reading any.
digest::Digest stamp_of(const std::vector<Taken>& taken) {
    digest::KeyFile key;
    for (const Taken& file : taken) {
        key.set(plan::key_word(file.to),
                fmt::format("{} {} {} {} {}",
                            file.from.string(),
                            file.info.size,
                            file.info.mtime_ns,
                            file.info.ctime_ns,
                            file.info.inode));
    }
    return key.digest();
}

Result<void>
copy_all(const std::vector<Taken>& taken, const sys::Path& content, sys::FileSystem& fs) {
    for (const Taken& file : taken) {
        const sys::Path target = content / file.to;
        KB_TRY(fs.make_directories(target.parent_path()));
        KB_TRY(fs.copy_file(file.from, target));
    }
    return {};
}

/// Published under two keys: its content, which the lock pins, and the stamp, which finds it again
/// without reading.
Result<store::TreeRef> take(const std::string& id,
                            const digest::Digest& stamp,
                            const std::vector<Taken>& taken,
                            store::Store& store,
                            sys::FileSystem& fs) {
    KB_TRY(const sys::Path content, store.make_temporary());
    auto copied = copy_all(taken, content, fs);
    auto manifest =
        copied ? store.read_manifest(content) : Result<store::FileManifest>{copied.error()};
    if (!manifest) {
        static_cast<void>(fs.remove_tree(content).has_value());
        return manifest.error();
    }
    const digest::Digest key = store::package_key(manifest->digest(), {});
    KB_TRY(store.add_package(id, key, content, *manifest));
    KB_TRY(const sys::Path none, store.make_temporary()); // the tree is there already
    return store.add_package(id, stamp, none, *manifest);
}

std::uint64_t size_of(const std::vector<Taken>& taken) {
    std::uint64_t bytes = 0;
    for (const Taken& file : taken) {
        bytes += file.info.size;
    }
    return bytes;
}

} // namespace

Result<InstalledToolkit>
take_cuda_root(const sys::Path& directory, store::Store& store, const Machine& machine) {
    KB_TRY(const Version version, version_of(directory, machine.fs));
    KB_TRY(const std::vector<Taken> taken, Taker{directory, machine.fs}.list());
    const Requirement requirement{.provider = "host", .name = "cuda", .version = version.to_text()};
    const std::string id = requirement.id();
    const digest::Digest stamp = stamp_of(taken);
    KB_TRY(auto tree, store.find_package(id, stamp));
    if (!tree) {
        KB_TRY(const auto held, store.lock("take-" + id));
        KB_TRY(tree, store.find_package(id, stamp)); // another process may have been faster
        if (!tree) {
            KB_TRY(tree, take(id, stamp, taken, store, machine.fs));
        }
    }
    return InstalledToolkit{.version = version,
                            .entry = {.id = id,
                                      .file = "cuda-" + version.to_text(),
                                      .platform = "any",
                                      .size = size_of(taken),
                                      .sha256 = tree->digest}};
}

Result<plan::SupportMatrix> with_installed(plan::SupportMatrix matrix,
                                           const InstalledToolkit& toolkit) {
    for (plan::ToolkitRow& row : matrix.toolkits) {
        if (row.backend != backend::BackendId::cuda || row.version != toolkit.version) {
            continue;
        }
        std::erase_if(row.requirements, [](const Requirement& requirement) {
            return requirement.name != "host-gcc"; // its own compiler is not part of a toolkit
        });
        KB_TRY(Requirement host, Requirement::parse(toolkit.entry.id));
        row.requirements.push_back(std::move(host));
        row.unavailable.clear();
        return matrix;
    }
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("CUDA {} is not a version of the support matrix",
                                        toolkit.version.to_text())};
}

} // namespace kb::toolchain
