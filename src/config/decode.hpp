// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"
#include "config/schema_table.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Steps of `read`, one a table of build.toml. Each reports its problems and goes on; what it
/// returns after a problem is incomplete and must not leave `read`.
namespace kb::config {

struct DecodeContext {
    Edition edition = Edition::v5;
    Diagnostics* diagnostics = nullptr;
};

/// A reader of this table whose unknown and missing keys are reported already.
[[nodiscard]] document::Reader open_table(const DecodeContext& context,
                                          TableId table,
                                          const document::Node& node,
                                          std::string path,
                                          std::optional<BackendId> backend = std::nullopt);

/// Two numbers as in "12.6"; spaces around them, leading zeros and '+' are taken. `problem` says
/// what is wrong when nothing is returned.
[[nodiscard]] std::optional<Version> parse_bound(std::string_view text, std::string& problem);
[[nodiscard]] std::optional<Located<Version>> read_bound(document::Reader& reader,
                                                         std::string_view key);
/// Empty when absent or wrong.
[[nodiscard]] Strings read_strings(document::Reader& reader, std::string_view key);
[[nodiscard]] std::optional<Located<GitUrl>> read_git_url(document::Reader& reader,
                                                          std::string_view key);
[[nodiscard]] std::vector<Located<BackendId>> read_backends(document::Reader& reader,
                                                            std::string_view key);
[[nodiscard]] std::vector<KernelDependency> read_kernel_depends(const DecodeContext& context,
                                                                document::Reader& reader);
/// Reports an unknown backend at `text`'s place.
[[nodiscard]] std::optional<Located<BackendId>> to_backend(const Located<std::string>& text,
                                                           Diagnostics& diagnostics);

/// Fills everything that [general] says.
void decode_general(const DecodeContext& context, const document::Node& node, Config& config);
/// Picks and decodes the framework table; needs config.sections for editions before 4.
void decode_framework(const DecodeContext& context, const document::Node& root, Config& config);
[[nodiscard]] std::vector<Section> decode_sections(const DecodeContext& context,
                                                   const document::Node& root);

/// `key` as a part of a table's name: bare, or in quotes.
[[nodiscard]] std::string key_text(std::string_view key);

struct EditionChoice {
    /// Nothing when the file names an edition that cannot be read, which is reported.
    std::optional<Edition> edition{};
    /// Whether the file says so itself.
    bool explicit_key = false;
};

/// Edition 5 says so in general.edition; older ones are told apart by the keys that they have.
[[nodiscard]] EditionChoice choose_edition(const document::Node& root, Diagnostics& diagnostics);

} // namespace kb::config
