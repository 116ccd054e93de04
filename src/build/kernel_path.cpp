// SPDX-License-Identifier: Apache-2.0
#include "build/kernel_path.hpp"

#include "base/text.hpp"
#include "build/torch_version.hpp"
#include "digest/digest.hpp"
#include "plan/selection.hpp"

#include <fmt/format.h>

namespace kb::build {

namespace {

using backend::FrameworkId;

bool is_for_torch(const backend::Variant& variant, const Version& torch) {
    switch (variant.framework) {
    case FrameworkId::torch:
        return variant.framework_version == torch.major_minor();
    case FrameworkId::torch_stable_abi:
        return variant.framework_version <= torch;
    case FrameworkId::torch_noarch:
    case FrameworkId::tvm_ffi:
        break;
    }
    return true;
}

bool is_for_device(const backend::Variant& variant, const PythonFacts& python) {
    if (variant.universal || variant.backend == backend::BackendId::cpu) {
        return true;
    }
    const bool same_major = variant.backend_version.empty() || !python.backend_version ||
                            variant.backend_version.major() == python.backend_version->major();
    return variant.backend == python.backend && same_major;
}

/// The text of `key: Optional[str] = '...'` or `key = '...'` in a Python file; "" without one.
std::string_view python_text(std::string_view file, std::string_view key) {
    for (std::string_view line : split(file, '\n')) {
        const bool is_it = line.starts_with(key) && line.size() > key.size() &&
                           (line[key.size()] == ' ' || line[key.size()] == ':');
        const std::size_t begin = line.find("= '");
        if (is_it && begin != std::string_view::npos) {
            line.remove_prefix(begin + 3);
            return line.substr(0, line.find('\''));
        }
    }
    return {};
}

} // namespace

std::optional<std::size_t> loadable_variant(std::span<const std::string> names,
                                            const PythonFacts& python) {
    plan::VariantChoice choice;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto name = backend::VariantName::parse(names[i]);
        if (name && is_for_torch(name->variant(), python.torch) &&
            is_for_device(name->variant(), python)) {
            choice.chosen.push_back({.name = std::move(*name)});
            places.push_back(i);
        }
    }
    const auto best = plan::best_for_host(choice,
                                          {.platform = python.platform,
                                           .backend = python.backend,
                                           .backend_version = python.backend_version});
    return best ? std::optional{places[*best]} : std::nullopt;
}

Result<TorchVersion> read_torch_version(sys::FileSystem& fs, const sys::Path& torch) {
    const sys::Path file = torch / "version.py";
    KB_TRY(const std::string text, fs.read_file(file));
    const auto version = leading_version(python_text(text, "__version__"));
    if (!version) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("'{}' does not say which torch it is", file.string())};
    }
    return TorchVersion{.torch = *version, .cuda = leading_version(python_text(text, "cuda"))};
}

Result<sys::Path> make_importable(sys::FileSystem& fs,
                                  const sys::Path& cache,
                                  const std::string& module,
                                  const sys::Path& variant) {
    const std::string target = variant.string();
    const std::string id = digest::sha256(module + "\n" + target).hex().substr(0, 16);
    const sys::Path folder = cache / ("kernel-" + id);
    KB_TRY(fs.make_directories(folder));
    const auto made = fs.symlink(target, folder / module);
    if (!made && !sys::exists(fs, folder / module)) { // another shell may have made it
        return made.error();
    }
    return folder;
}

} // namespace kb::build
