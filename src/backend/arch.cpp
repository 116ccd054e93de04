// SPDX-License-Identifier: Apache-2.0
#include "backend/arch.hpp"

#include "backend/rules.hpp"
#include "base/diagnostics.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::backend {

namespace {

/// "sm_90a", "compute_90a" and "90a" are how compilers write what build.toml calls "9.0a".
std::string dotted_spelling(std::string_view text) {
    std::string word = to_lower(trim(text));
    for (const std::string_view prefix : {"sm_", "compute_", "sm"}) {
        if (word.starts_with(prefix)) {
            word.erase(0, prefix.size());
            break;
        }
    }
    const std::size_t digits = word.find_first_not_of("0123456789");
    const std::size_t length = digits == std::string::npos ? word.size() : digits;
    if (length >= 2 && length <= 3 && word.find('.') == std::string::npos) {
        word.insert(length - 1, ".");
    }
    return word;
}

std::vector<std::string> cuda_notes(std::string_view text) {
    const std::string word = dotted_spelling(text);
    const std::string base = word.substr(0, word.find('+'));
    const auto known = known_cuda_archs();
    if (std::ranges::find(known, std::string_view{base}) != known.end()) {
        const bool ptx = word.ends_with("+ptx");
        return {fmt::format("did you mean '{}{}'?", base, ptx ? "+PTX" : "")};
    }
    auto notes = suggestion_note(base, known);
    notes.emplace_back("a capability is written as major.minor, optionally with 'a' or 'f' and "
                       "'+PTX', for example '9.0a' or '12.0+PTX'");
    return notes;
}

std::optional<ArchProblem> check_cuda_arch(std::string_view text) {
    const auto arch = parse_cuda_arch(text);
    if (!arch) {
        return ArchProblem{.message = fmt::format("'{}' is not a CUDA capability", text),
                           .notes = cuda_notes(text)};
    }
    CudaArch plain = *arch;
    plain.ptx = false;
    const std::string word = plain.to_text();
    const auto known = known_cuda_archs();
    if (std::ranges::find(known, std::string_view{word}) == known.end()) {
        return ArchProblem{.message = fmt::format("no CUDA device has the capability '{}'", text),
                           .notes = suggestion_note(word, known)};
    }
    return std::nullopt;
}

std::optional<ArchProblem> check_rocm_arch(std::string_view text) {
    // A target id may carry features: "gfx90a:sramecc+:xnack-".
    const std::vector<std::string_view> parts = split(text, ':');
    const auto known = known_rocm_archs();
    bool good = std::ranges::find(known, parts[0]) != known.end();
    for (std::size_t i = 1; i < parts.size(); ++i) {
        good = good && (parts[i] == "xnack+" || parts[i] == "xnack-" || parts[i] == "sramecc+" ||
                        parts[i] == "sramecc-");
    }
    if (good) {
        return std::nullopt;
    }
    return ArchProblem{.message = fmt::format("no ROCm device is called '{}'", text),
                       .notes = suggestion_note(to_lower(parts[0]), known)};
}

} // namespace

std::optional<ArchProblem> check_arch(BackendId backend, std::string_view text) {
    if (backend == BackendId::cuda) {
        return check_cuda_arch(text);
    }
    if (backend == BackendId::rocm) {
        return check_rocm_arch(text);
    }
    return ArchProblem{.message = fmt::format("the {} backend has no architectures, found '{}'",
                                              rules_of(backend).title,
                                              text)};
}

} // namespace kb::backend
