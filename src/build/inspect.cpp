// SPDX-License-Identifier: Apache-2.0
#include "build/inspect.hpp"

#include "base/text.hpp"
#include "check/cxx_names.hpp"
#include "sys/random_access_file.hpp"
#include "sys/worker_pool.hpp"
#include "toolchain/torch_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::build {

namespace {

using toolchain::TorchNames;

class FileSource final : public binfmt::ByteSource {
public:
    explicit FileSource(sys::RandomAccessFile file) : file_{std::move(file)} {}

    [[nodiscard]] std::uint64_t size() const override { return file_.size(); }

    [[nodiscard]] Result<void> read(std::uint64_t offset,
                                    std::span<std::byte> into) const override {
        return file_.read(offset, into);
    }

private:
    sys::RandomAccessFile file_;
};

/// "libx.so.1.2" as well as "_k.abi3.so".
bool is_library(std::string_view name) {
    for (const std::string_view extension : {".so", ".pyd", ".dylib", ".dll"}) {
        if (name.ends_with(extension)) {
            return true;
        }
    }
    const std::size_t at = name.rfind(".so.");
    return at != std::string_view::npos && std::ranges::all_of(name.substr(at + 4), [](char c) {
               return c == '.' || (c >= '0' && c <= '9');
           });
}

check::Library inspect_library(const sys::Path& directory, std::string path) {
    check::Library out{.path = std::move(path)};
    auto object = inspect_file(directory / out.path);
    if (object) {
        out.object = std::move(*object);
    } else {
        out.unread_reason = object.error().to_text();
    }
    return out;
}

/// A variant of one torch version with C++ names that may be torch's: only then the list is read.
bool wants_torch_names(const check::CheckInput& input) {
    return input.promise.variant &&
           input.promise.variant->framework == backend::FrameworkId::torch &&
           std::ranges::any_of(input.libraries, [](const check::Library& library) {
               return library.object &&
                      std::ranges::any_of(library.object->imports,
                                          [](const binfmt::Symbol& symbol) {
                                              return check::may_be_torch(symbol.name);
                                          });
           });
}

std::string no_list(const backend::Variant& variant, const std::vector<Version>& known) {
    std::vector<std::string> texts;
    for (const Version& version : known) {
        texts.push_back(version.to_text());
    }
    return fmt::format(
        "there is no list of the names that torch {} for {} on {} exports; there are "
        "lists for cpu and cuda on x86_64-linux of torch {}",
        variant.framework_version.to_text(),
        backend::to_text(variant.backend),
        backend::to_text(variant.platform),
        fmt::join(texts, ", "));
}

} // namespace

Result<binfmt::SharedObject> inspect_file(const sys::Path& path) {
    KB_TRY(sys::RandomAccessFile file, sys::RandomAccessFile::open(path));
    const FileSource source{std::move(file)};
    return binfmt::read_shared_object(source);
}

Result<std::vector<check::Library>>
inspect_libraries(sys::FileSystem& fs, const sys::Path& directory, unsigned threads) {
    KB_TRY(const std::vector<sys::WalkEntry> entries, sys::walk(fs, directory));
    std::vector<std::string> paths;
    for (const sys::WalkEntry& entry : entries) {
        if (entry.info.type != sys::FileType::directory && is_library(entry.path.name())) {
            paths.push_back(entry.path.text());
        }
    }
    std::vector<check::Library> out(paths.size());
    sys::parallel_for(paths.size(), threads, [&](std::size_t i) {
        out[i] = inspect_library(directory, paths[i]);
    });
    return out;
}

check::Report run_checks(check::CheckInput input) {
    TorchNames torch; // what the input points to
    if (wants_torch_names(input)) {
        const backend::Variant& variant = *input.promise.variant;
        auto names =
            toolchain::torch_names(variant.framework_version, variant.backend, variant.platform);
        if (!names) {
            input.torch_names.missing_reason = names.error().to_text();
        } else if (names->names.empty()) {
            input.torch_names.missing_reason = no_list(variant, names->known);
        } else {
            torch = *std::move(names);
            input.torch_names.names = torch.names;
        }
    }
    return check::run(input, check::all_checks());
}

check::Promise promise_of(std::string_view variant_name, const package::Metadata* metadata) {
    check::Promise out{
        .manylinux = "manylinux_2_28", .python_abi = Version{{3, 9}}, .macos = Version{{15, 0}}};
    if (const auto name = backend::VariantName::parse(variant_name)) {
        out.variant = name->variant();
        if (out.variant->framework == backend::FrameworkId::torch_stable_abi) {
            out.torch_stable_abi = out.variant->framework_version;
        }
        if (out.variant->backend == backend::BackendId::metal) {
            out.macos = Version{{26, 0}};
        }
    }
    if (metadata != nullptr) {
        out.archs = metadata->archs;
    }
    return out;
}

} // namespace kb::build
