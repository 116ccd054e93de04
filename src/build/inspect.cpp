// SPDX-License-Identifier: Apache-2.0
#include "build/inspect.hpp"

#include "backend/mounts.hpp"
#include "base/text.hpp"
#include "binfmt/elf.hpp"
#include "binfmt/op_schemas.hpp"
#include "check/cxx_names.hpp"
#include "check/host_paths.hpp"
#include "project/project.hpp"
#include "sys/random_access_file.hpp"
#include "sys/worker_pool.hpp"
#include "toolchain/torch_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <system_error>

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

// Smaller files are searched faster than a thread starts.
constexpr std::uint64_t kSearchShare = 8UL << 20U;

/// Parts of the file side by side: each thread has the file open for itself.
Result<std::vector<binfmt::PathText>> find_paths(const sys::Path& path,
                                                 std::uint64_t size,
                                                 const std::vector<std::string>& beginnings,
                                                 unsigned threads) {
    using Found = Result<std::vector<binfmt::PathText>>;
    const std::uint64_t shares =
        std::clamp<std::uint64_t>(size / kSearchShare, 1, std::max(1U, threads));
    const std::uint64_t share = size / shares + 1;
    std::vector<Found> parts(shares, Found{std::vector<binfmt::PathText>{}});
    sys::parallel_for(shares, threads, [&](std::size_t i) {
        const std::uint64_t from = std::min(size, i * share);
        parts[i] = [&]() -> Found {
            KB_TRY(sys::RandomAccessFile file, sys::RandomAccessFile::open(path));
            return binfmt::find_path_texts(
                FileSource{std::move(file)},
                {.beginnings = beginnings,
                 .range = {.offset = from, .size = std::min(share, size - from)}});
        }();
    });
    std::vector<binfmt::PathText> out;
    for (const Found& part : parts) {
        KB_TRY(const std::vector<binfmt::PathText> paths, part);
        out.insert(out.end(), paths.begin(), paths.end());
    }
    return out;
}

check::Library
inspect_library(const sys::Path& directory, std::string path, const InspectOptions& options) {
    check::Library out{.path = std::move(path)};
    auto object = inspect_file(directory / out.path, options);
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

bool is_at_or_below(std::string_view path, std::string_view place) {
    return path.starts_with(place) && (path.size() == place.size() || path[place.size()] == '/');
}

/// Texts that begin so say nothing about this machine.
bool is_place_of_sandbox(std::string_view place) {
    constexpr std::array kOwn{
        backend::kSourceMount, backend::kWorkMount, backend::kCacheMount, backend::kToolchainMount};
    return place == backend::kHostMount ||
           std::ranges::any_of(
               kOwn, [place](std::string_view mount) { return is_at_or_below(place, mount); });
}

} // namespace

Result<binfmt::SharedObject> inspect_file(const sys::Path& path, const InspectOptions& options) {
    KB_TRY(sys::RandomAccessFile file, sys::RandomAccessFile::open(path));
    const std::uint64_t size = file.size();
    const FileSource source{std::move(file)};
    KB_TRY(binfmt::SharedObject object, binfmt::read_shared_object(source));
    if (options.paths == InspectOptions::Paths::find) {
        KB_TRY(object.path_texts,
               find_paths(path,
                          size,
                          check::host_path_beginnings(object.format, options.machine_places),
                          options.threads));
        object.remove_gap(binfmt::Fact::path_texts);
    }
    return object;
}

Result<AbiFacts> read_abi(const sys::Path& path) {
    KB_TRY(sys::RandomAccessFile file, sys::RandomAccessFile::open(path));
    const FileSource source{std::move(file)};
    AbiFacts out;
    KB_TRY(out.object, binfmt::read_shared_object(source));
    if (const auto gap = out.object.gap(binfmt::Fact::symbols)) {
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format("'{}': {}", path.string(), *gap)};
    }
    KB_TRY(out.schemas, binfmt::find_op_schemas(source));
    const auto sections = binfmt::read_elf_sections(source);
    for (const binfmt::ElfSection& section :
         sections ? *sections : std::vector<binfmt::ElfSection>{}) {
        out.sections[section.name] += section.range.size;
    }
    return out;
}

Result<std::vector<check::Library>>
inspect_libraries(sys::FileSystem& fs, const sys::Path& directory, const InspectOptions& options) {
    KB_TRY(const std::vector<sys::WalkEntry> entries, sys::walk(fs, directory));
    std::vector<std::string> paths;
    for (const sys::WalkEntry& entry : entries) {
        if (entry.info.type != sys::FileType::directory && is_library(entry.path.name())) {
            paths.push_back(entry.path.text());
        }
    }
    std::vector<check::Library> out(paths.size());
    InspectOptions inner = options; // threads go to the files, or into the only one
    inner.threads = paths.size() > 1 ? 1 : options.threads;
    sys::parallel_for(paths.size(), options.threads, [&](std::size_t i) {
        out[i] = inspect_library(directory, paths[i], inner);
    });
    return out;
}

std::vector<check::Suppression> suppressions_of(const config::ProjectSettings& settings) {
    std::vector<check::Suppression> out;
    for (const config::Suppression& from : settings.suppressions) {
        out.push_back({.check = from.check,
                       .variant = from.variant,
                       .library = from.library,
                       .subject = from.subject,
                       .reason = from.reason});
    }
    return out;
}

std::vector<std::string> machine_places(const sys::Path& project) {
    std::set<std::string> places;
    for (const sys::Path& named : {project, project / project::kStateDirectory}) {
        std::error_code problem;
        const sys::Path absolute = std::filesystem::absolute(named, problem).lexically_normal();
        // What is not there yet stands for itself: compilers ask the kernel, which resolves links.
        const sys::Path resolved = std::filesystem::weakly_canonical(absolute, problem);
        for (const sys::Path& path : {absolute, resolved}) {
            std::string place = path.string();
            while (place.ends_with('/')) {
                place.pop_back();
            }
            if (place.starts_with('/') && !is_place_of_sandbox(place)) {
                places.insert(std::move(place));
            }
        }
    }
    return {places.begin(), places.end()};
}

std::vector<std::string> failures_of(const check::Report& report) {
    std::vector<std::string> out;
    for (const check::Finding& finding : report.findings) {
        if (finding.counts()) {
            out.push_back(fmt::format("{}: {}", finding.check, finding.message));
        }
    }
    return out;
}

std::vector<std::string> failed_checks(const check::Report& report) {
    std::set<std::string> out;
    for (const check::Verdict& verdict : report.verdicts) {
        if (verdict.outcome != check::Outcome::passed && !verdict.allowed) {
            out.insert(verdict.check);
        }
    }
    for (const check::Finding& finding : report.findings) {
        if (finding.counts()) {
            out.insert(finding.check);
        }
    }
    return {out.begin(), out.end()};
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
