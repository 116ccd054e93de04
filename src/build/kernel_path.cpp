// SPDX-License-Identifier: Apache-2.0
#include "build/kernel_path.hpp"

#include "base/text.hpp"
#include "digest/digest.hpp"
#include "plan/selection.hpp"

#include <fmt/format.h>

namespace kb::build {

namespace {

using backend::FrameworkId;

bool is_for(const backend::Variant& variant, const Version& torch) {
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

} // namespace

std::optional<std::size_t> loadable_variant(std::span<const std::string> names,
                                            const PythonFacts& python) {
    plan::VariantChoice choice;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto name = backend::VariantName::parse(names[i]);
        if (name && is_for(name->variant(), python.torch)) {
            choice.chosen.push_back({.name = std::move(*name)});
            places.push_back(i);
        }
    }
    const auto best =
        plan::best_for_host(choice, {.platform = python.platform, .backend = python.backend});
    return best ? std::optional{places[*best]} : std::nullopt;
}

Result<Version> read_torch_version(sys::FileSystem& fs, const sys::Path& torch) {
    const sys::Path file = torch / "version.py";
    KB_TRY(const std::string text, fs.read_file(file));
    constexpr std::string_view kKey = "__version__ = '";
    const std::size_t begin = text.find(kKey);
    if (begin != std::string::npos) {
        const std::string_view rest = std::string_view{text}.substr(begin + kKey.size());
        if (const auto version =
                Version::parse(rest.substr(0, rest.find_first_not_of("0123456789.")))) {
            return *version;
        }
    }
    return Error{.code = ErrorCode::corrupt,
                 .message = fmt::format("'{}' does not say which torch it is", file.string())};
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
