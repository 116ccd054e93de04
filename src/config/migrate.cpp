// SPDX-License-Identifier: Apache-2.0
#include "config/migrate.hpp"

#include "base/text.hpp"
#include "config/decode.hpp"
#include "document/json.hpp"
#include "document/toml.hpp"
#include "document/toml_edit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::config {

namespace {

using document::Node;
using document::TomlEdit;

std::string quoted(std::string_view text) {
    return document::write_json(Node{text}, {.indent = 0, .final_newline = false});
}

template <typename T, typename Text>
std::string quoted_array(const std::vector<Located<T>>& items, Text text) {
    std::vector<std::string> out;
    std::ranges::transform(items, std::back_inserter(out), [&](const Located<T>& item) {
        return quoted(text(item.value));
    });
    return fmt::format("[{}]", join(out, ", "));
}

std::string strings_array(const Strings& items) {
    return quoted_array(items, [](const std::string& s) -> std::string_view { return s; });
}

/// How a key stands in the text, which decides how its neighbours are written.
enum class Style : std::uint8_t {
    line,  ///< alone on its line, below a header or with a dotted prefix
    inside ///< in an inline table
};

/// Collects edits of one file by place and says what they did.
class Rewrite {
public:
    explicit Rewrite(std::string_view text) : text_{text}, lines_{split(text, '\n')} {
        if (text.starts_with("\xEF\xBB\xBF")) {
            lines_[0].remove_prefix(3);
        }
        newline_ = text.find("\r\n") == std::string_view::npos ? "\n" : "\r\n";
    }

    void replace(const Span& span, std::string text, std::string change) {
        note(span.line, std::move(change));
        edits_.push_back({.span = span, .text = std::move(text)});
    }

    /// Adds `key = value` behind the entry `anchor`, in the way that the anchor is written.
    void add_behind(const Node& anchor, std::string_view key, std::string_view value) {
        note(anchor.span.end_line, fmt::format("added '{} = {}'", key, value));
        if (style_of(anchor) == Style::inside) {
            insert(
                anchor.span.end_line, anchor.span.end_column, fmt::format(", {} = {}", key, value));
            return;
        }
        insert_line(anchor.span.end_line, fmt::format("{}{} = {}", prefix_of(anchor), key, value));
    }

    /// Adds lines behind a line; an empty one stands before them.
    void add_block(std::uint32_t line, const std::vector<std::string>& block, std::string change) {
        note(line, std::move(change));
        insert_line(line, "");
        for (const std::string& text : block) {
            insert_line(line, text);
        }
    }

    /// Takes an entry away, with its line or its comma.
    void remove(const Node& entry, std::string_view key, std::string_view why) {
        note(entry.key_span.line, fmt::format("removed '{}': {}", key, why));
        Span span = entry.span;
        span.line = entry.key_span.line;
        span.column = entry.key_span.column;
        if (style_of(entry) == Style::line) {
            span.column = 1;
            if (span.end_line < lines_.size()) {
                ++span.end_line;
                span.end_column = 1;
            } else {
                span.end_column = end_column(span.end_line);
            }
        } else {
            take_comma(span);
        }
        edits_.push_back({.span = span, .text = ""});
    }

    [[nodiscard]] std::uint32_t last_line() const {
        const std::size_t count = lines_.size();
        return static_cast<std::uint32_t>(lines_.back().empty() && count > 1 ? count - 1 : count);
    }

    [[nodiscard]] std::string apply() { return document::apply_edits(text_, std::move(edits_)); }

    [[nodiscard]] std::vector<std::string> changes() {
        std::ranges::stable_sort(changes_, {}, &Change::line);
        std::vector<std::string> out;
        for (const Change& change : changes_) {
            out.push_back(fmt::format("line {}: {}", change.line, change.text));
        }
        return out;
    }

private:
    struct Change {
        std::uint32_t line = 0;
        std::string text{};
    };

    void note(std::uint32_t line, std::string change) {
        changes_.push_back({.line = line, .text = std::move(change)});
    }

    [[nodiscard]] std::string_view line(std::uint32_t number) const { return lines_[number - 1]; }

    [[nodiscard]] std::uint32_t end_column(std::uint32_t number) const {
        return static_cast<std::uint32_t>(count_code_points(line(number)) + 1);
    }

    /// Text of the line before the key.
    [[nodiscard]] std::string_view prefix_of(const Node& entry) const {
        const std::string_view text = line(entry.key_span.line);
        std::size_t bytes = 0;
        for (std::uint32_t column = 1; column < entry.key_span.column && bytes < text.size();
             ++column) {
            ++bytes;
            while (bytes < text.size() &&
                   (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) {
                ++bytes;
            }
        }
        return text.substr(0, bytes);
    }

    [[nodiscard]] Style style_of(const Node& entry) const {
        const bool alone = prefix_of(entry).find_first_of("{,[") == std::string_view::npos;
        return alone ? Style::line : Style::inside;
    }

    void insert(std::uint32_t at_line, std::uint32_t column, std::string text) {
        edits_.push_back(
            {.span = {.line = at_line, .column = column, .end_line = at_line, .end_column = column},
             .text = std::move(text)});
    }

    void insert_line(std::uint32_t behind, std::string_view text) {
        if (behind < lines_.size()) {
            insert(behind + 1, 1, std::string{text} + newline_);
        } else {
            insert(behind, end_column(behind), newline_ + std::string{text});
        }
    }

    /// Widens the place of an inline entry by the comma behind it, or else before it. One line
    /// only: an inline table has no other.
    void take_comma(Span& span) const {
        const std::string_view text = line(span.line);
        if (count_code_points(text) != text.size() || span.line != span.end_line) {
            return; // the check of the result refuses what this leaves
        }
        const std::size_t behind = text.find_first_not_of(" \t", span.end_column - 1);
        if (behind != std::string_view::npos && text[behind] == ',') {
            const std::size_t next = text.find_first_not_of(" \t", behind + 1);
            span.end_column = static_cast<std::uint32_t>(next) + 1;
            return;
        }
        const std::size_t before = text.rfind(',', span.column - 1);
        if (before != std::string_view::npos) {
            span.column = static_cast<std::uint32_t>(before) + 1;
        }
    }

    std::string_view text_;
    std::vector<std::string_view> lines_;
    std::string newline_{};
    std::vector<TomlEdit> edits_{};
    std::vector<Change> changes_{};
};

std::uint32_t end_line_of(const Node& node) {
    std::uint32_t line = node.span.end_line;
    if (node.is_table()) {
        for (const document::Entry& entry : node.entries()) {
            line = std::max(line, end_line_of(entry.value));
        }
    }
    return line;
}

class Migrator {
public:
    Migrator(std::string_view text, const Node& root, const Config& config)
        : root_{&root}, config_{&config}, rewrite_{text} {}

    Migration run(const std::string& license) {
        general(license);
        if (config_->edition == Edition::v1) {
            sections();
        }
        framework();
        return {.from = config_->edition, .text = rewrite_.apply(), .changes = rewrite_.changes()};
    }

private:
    void general(const std::string& license) {
        const Node& general = *root_->find("general");
        const Node& name = *general.find("name");
        if (name.as_string() != config_->name.text()) {
            rewrite_.replace(
                name.span,
                quoted(config_->name.text()),
                fmt::format("renamed '{}' to '{}'", name.as_string(), config_->name.text()));
        }
        const Node* version = general.find("version");
        const Node& anchor = version == nullptr ? name : *version;
        if (version == nullptr) {
            rewrite_.add_behind(anchor, "version", "1");
        }
        rewrite_.add_behind(anchor, "edition", "5");
        if (general.find("license") == nullptr) {
            rewrite_.add_behind(anchor, "license", quoted(license));
        }
        if (config_->edition <= Edition::v2) {
            backends(general, anchor);
        }
        for (const std::string_view bound : {"minver", "maxver"}) {
            const std::string old = fmt::format("cuda-{}", bound);
            if (const Node* found = general.find(old)) {
                rewrite_.replace(found->key_span,
                                 fmt::format("cuda.{}", bound),
                                 fmt::format("renamed '{}' to 'cuda.{}'", old, bound));
            }
        }
    }

    void backends(const Node& general, const Node& anchor) {
        rewrite_.add_behind(anchor, "backends", quoted_array(config_->backends, [](BackendId id) {
                                return backend::to_text(id);
                            }));
        if (const Node* universal = general.find("universal")) {
            rewrite_.remove(*universal, "universal", "the framework table says it");
        }
    }

    void framework() {
        const bool noarch = std::holds_alternative<TorchNoarch>(config_->framework);
        const Node* torch = root_->find("torch");
        if (torch != nullptr) {
            if (const Node* universal = torch->find("universal")) {
                rewrite_.remove(*universal, "universal", "the framework table says it");
            }
        }
        if (!noarch || root_->find("torch-noarch") != nullptr) {
            return;
        }
        if (torch == nullptr) {
            rewrite_.add_block(
                rewrite_.last_line(), {"[torch-noarch]"}, "added the table [torch-noarch]");
            return;
        }
        rewrite_.replace(torch->key_span, "torch-noarch", "renamed [torch] to [torch-noarch]");
        for (const document::Entry& entry : torch->entries()) {
            if (entry.key != "pyext" && entry.key != "universal") {
                rewrite_.remove(entry.value, entry.key, "[torch-noarch] compiles nothing");
            }
        }
    }

    /// Edition 1: `language` becomes `backend`, "cuda-hipify" becomes two sections.
    void sections() {
        const Node* kernels = root_->find("kernel");
        if (kernels == nullptr) {
            return;
        }
        for (const document::Entry& entry : kernels->entries()) {
            section(entry);
        }
    }

    void section(const document::Entry& entry) {
        const auto found = std::ranges::find(
            config_->sections, entry.key, [](const Section& s) { return s.id.value; });
        const std::string backend = quoted(backend::to_text(found->backend.value));
        const Node* language = entry.value.find("language");
        if (language != nullptr) {
            rewrite_.replace(language->key_span, "backend", "renamed 'language' to 'backend'");
            if (language->as_string() != backend::to_text(found->backend.value)) {
                rewrite_.replace(
                    language->span, backend, fmt::format("the backend is {}", backend));
            }
        } else {
            rewrite_.add_behind(*entry.value.find("depends"), "backend", backend);
        }
        if (const Node* archs = entry.value.find("rocm-archs")) {
            rewrite_.remove(*archs, "rocm-archs", "it belongs to sections for rocm");
        }
        const Node* capabilities = entry.value.find("cuda-capabilities");
        if (capabilities != nullptr && found->backend.value != BackendId::cuda) {
            rewrite_.remove(*capabilities, "cuda-capabilities", "it belongs to sections for cuda");
        }
        if (language != nullptr && language->as_string() == "cuda-hipify") {
            rocm_section(entry);
        }
    }

    void rocm_section(const document::Entry& entry) {
        const std::string id = entry.key + "_rocm";
        const auto rocm =
            std::ranges::find(config_->sections, id, [](const Section& s) { return s.id.value; });
        std::vector<std::string> block{
            fmt::format("[kernel.{}]", key_text(id)),
            "backend = \"rocm\"",
            fmt::format("depends = {}",
                        quoted_array(rocm->depends, [](NativeDependency d) { return to_text(d); })),
            fmt::format("src = {}", strings_array(rocm->src))};
        if (!rocm->include.empty()) {
            block.push_back(fmt::format("include = {}", strings_array(rocm->include)));
        }
        if (rocm->rocm_archs) {
            block.push_back(fmt::format("rocm-archs = {}", strings_array(*rocm->rocm_archs)));
        }
        rewrite_.add_block(end_line_of(entry.value),
                           block,
                           fmt::format("added [kernel.{}] for rocm", key_text(id)));
    }

    const Node* root_;
    const Config* config_;
    Rewrite rewrite_;
};

/// Whether the rewritten text is edition 5 and means what the old one did.
bool is_faithful(const std::string& text, const Config& before, const Origin& origin) {
    Diagnostics ignored;
    const std::optional<Node> root = document::parse_toml(text, origin, ignored);
    const std::optional<Config> after = root ? read(*root, ignored) : std::nullopt;
    return after && after->edition == Edition::v5 && same_meaning(before, *after);
}

} // namespace

std::optional<Migration> migrate(std::string_view text,
                                 const Origin& origin,
                                 const MigrationOptions& options,
                                 Diagnostics& diagnostics) {
    const std::optional<Node> root = document::parse_toml(text, origin, diagnostics);
    Diagnostics found;
    std::optional<Config> config = root ? read(*root, found) : std::nullopt;
    if (!config) {
        diagnostics.append(std::move(found));
        return std::nullopt;
    }
    if (config->edition == Edition::v5) {
        return Migration{.from = Edition::v5, .text = std::string{text}};
    }
    const Node& general = *root->find("general");
    if (general.find("license") == nullptr) {
        if (!options.license) {
            diagnostics.error("missing-license",
                              general.key_span,
                              "[general] names no licence, which edition 5 needs",
                              {"add it, or give it: kernel-builder update-build --license ID"});
            return std::nullopt;
        }
        config->license.value = *options.license;
    }
    Migration out = Migrator{text, *root, *config}.run(config->license.value);
    if (!is_faithful(out.text, *config, origin)) {
        diagnostics.error(
            "cannot-migrate",
            general.key_span,
            "this file is written in a way that cannot be rewritten in place",
            {"write [general], the framework and each [kernel.*] as tables with one key a line, "
             "then run update-build again; nothing was changed"});
        return std::nullopt;
    }
    return out;
}

} // namespace kb::config
