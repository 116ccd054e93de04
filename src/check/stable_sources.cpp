// SPDX-License-Identifier: Apache-2.0
#include "check/stable_sources.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kb::check {

namespace {

using Pair = std::pair<std::string_view, std::string_view>;

/// Beginnings of headers that are stable.
constexpr std::array<std::string_view, 3> kStableHeaders{
    "torch/csrc/stable/", "torch/headeronly/", "torch/csrc/inductor/aoti_torch/c/shim"};
constexpr std::array<std::string_view, 5> kTorchHeaders{
    "torch/", "ATen/", "c10/", "caffe2/", "THC/"};

constexpr std::array<Pair, 9> kHeaders{{
    {"torch/extension.h", "torch/csrc/stable/tensor.h and torch/csrc/stable/ops.h"},
    {"torch/all.h", "torch/csrc/stable/tensor.h and torch/csrc/stable/ops.h"},
    {"torch/torch.h", "torch/csrc/stable/tensor.h and torch/csrc/stable/ops.h"},
    {"torch/library.h", "torch/csrc/stable/library.h"},
    {"ATen/cuda/CUDAContext.h", "torch/csrc/stable/accelerator.h"},
    {"c10/cuda/CUDAGuard.h", "torch/csrc/stable/accelerator.h"},
    {"c10/util/BFloat16.h", "torch/headeronly/util/BFloat16.h"},
    {"c10/util/Half.h", "torch/headeronly/util/Half.h"},
    {"c10/core/ScalarType.h", "torch/headeronly/core/ScalarType.h"},
}};

constexpr std::array<Pair, 20> kNames{{
    {"at::Tensor", "torch::stable::Tensor"},
    {"torch::Tensor", "torch::stable::Tensor"},
    {"at::empty_like", "torch::stable::empty_like"},
    {"torch::empty_like", "torch::stable::empty_like"},
    {"at::fill_", "torch::stable::fill_"},
    {"at::pad", "torch::stable::pad"},
    {"at::Half", "torch::headeronly::Half"},
    {"c10::Half", "torch::headeronly::Half"},
    {"at::BFloat16", "torch::headeronly::BFloat16"},
    {"c10::BFloat16", "torch::headeronly::BFloat16"},
    {"at::ScalarType", "torch::headeronly::ScalarType"},
    {"c10::ScalarType", "torch::headeronly::ScalarType"},
    {"at::kFloat", "torch::headeronly::ScalarType::Float"},
    {"at::kHalf", "torch::headeronly::ScalarType::Half"},
    {"at::kBFloat16", "torch::headeronly::ScalarType::BFloat16"},
    {"at::cuda::getCurrentCUDAStream", "aoti_torch_get_current_cuda_stream"},
    {"c10::cuda::getCurrentCUDAStream", "aoti_torch_get_current_cuda_stream"},
    {"at::cuda::CUDAGuard", "torch::stable::accelerator::DeviceGuard"},
    {"c10::cuda::CUDAGuard", "torch::stable::accelerator::DeviceGuard"},
    {"at::cuda::OptionalCUDAGuard", "torch::stable::accelerator::DeviceGuard"},
}};

constexpr std::array<Pair, 3> kMacros{{
    {"TORCH_LIBRARY", "STABLE_TORCH_LIBRARY"},
    {"TORCH_LIBRARY_IMPL", "STABLE_TORCH_LIBRARY_IMPL"},
    {"TORCH_CHECK", "STD_TORCH_CHECK"},
}};

template <std::size_t kSize>
std::string replacement_in(const std::array<Pair, kSize>& table, std::string_view what) {
    const auto found = std::ranges::find(table, what, &Pair::first);
    return found == table.end() ? std::string{} : std::string{found->second};
}

bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Where one is while reading a source.
enum class Inside : std::uint8_t { code, block_comment };

/// The line without comments and without what stands in quotes.
std::string code_of(std::string_view line, Inside& inside) {
    std::string out;
    char quote = '\0';
    for (std::size_t i = 0; i < line.size(); ++i) {
        const std::string_view rest = line.substr(i);
        if (inside == Inside::block_comment) {
            if (rest.starts_with("*/")) {
                inside = Inside::code;
                ++i;
            }
        } else if (quote != '\0') {
            if (line[i] == '\\') {
                ++i;
            } else if (line[i] == quote) {
                quote = '\0';
            }
        } else if (rest.starts_with("//")) {
            break;
        } else if (rest.starts_with("/*")) {
            inside = Inside::block_comment;
            ++i;
        } else if (line[i] == '"') {
            quote = line[i];
        } else {
            out += line[i];
        }
    }
    return out;
}

/// "torch/extension.h" of `#include <torch/extension.h>`; nothing for other lines.
std::string_view included(std::string_view line) {
    line = trim(line);
    if (!line.starts_with('#')) {
        return {};
    }
    line = trim(line.substr(1));
    if (!line.starts_with("include")) {
        return {};
    }
    line = trim(line.substr(7));
    const std::size_t end = line.find_first_of(">\"", 1);
    const bool quoted = !line.empty() && (line[0] == '<' || line[0] == '"');
    return quoted && end != std::string_view::npos ? line.substr(1, end - 1) : std::string_view{};
}

template <std::size_t kSize>
bool begins(std::string_view text, const std::array<std::string_view, kSize>& beginnings) {
    return std::ranges::any_of(
        beginnings, [&](std::string_view beginning) { return text.starts_with(beginning); });
}

void add(std::vector<UnstableUse>& out, UnstableUse use) {
    if (std::ranges::find(out, use) == out.end()) {
        out.push_back(std::move(use));
    }
}

/// The qualified name that begins at `at`: "at::cuda::CUDAGuard".
std::string_view qualified_name(std::string_view code, std::size_t at) {
    std::size_t end = at;
    while (end < code.size() && (is_word(code[end]) || code.substr(end).starts_with("::"))) {
        end += is_word(code[end]) ? 1U : 2U;
    }
    return code.substr(at, end - at);
}

void find_names(std::string_view code, std::size_t line, std::vector<UnstableUse>& out) {
    constexpr std::array<std::string_view, 4> kSpaces{"at::", "c10::", "torch::", "caffe2::"};
    constexpr std::array<std::string_view, 2> kStable{"torch::stable", "torch::headeronly"};
    for (std::size_t at = 0; at < code.size(); ++at) {
        const bool starts_word =
            is_word(code[at]) && (at == 0 || (!is_word(code[at - 1]) && code[at - 1] != ':'));
        if (!starts_word) {
            continue;
        }
        const std::string_view name = qualified_name(code, at);
        const std::string macro = replacement_in(kMacros, name);
        if (!macro.empty()) {
            add(out, {.line = line, .what = std::string{name}, .replacement = macro});
        } else if (begins(name, kSpaces) && !begins(name, kStable)) {
            add(out,
                {.line = line,
                 .what = std::string{name},
                 .replacement = replacement_in(kNames, name)});
        }
        at += name.size() - 1;
    }
}

} // namespace

std::vector<UnstableUse> find_unstable_uses(std::string_view text) {
    std::vector<UnstableUse> out;
    Inside inside = Inside::code;
    std::size_t number = 0;
    for (const std::string_view line : split(text, '\n')) {
        ++number;
        const bool in_comment = inside == Inside::block_comment;
        const std::string code = code_of(line, inside);
        const std::string_view header = in_comment ? std::string_view{} : included(line);
        if (header.empty()) {
            find_names(code, number, out);
        } else if (begins(header, kTorchHeaders) && !begins(header, kStableHeaders)) {
            add(out,
                {.line = number,
                 .kind = UnstableUse::Kind::header,
                 .what = std::string{header},
                 .replacement = replacement_in(kHeaders, header)});
        }
    }
    return out;
}

} // namespace kb::check
