// SPDX-License-Identifier: Apache-2.0
#include "config/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::config {

namespace {

using document::Node;
using document::Reader;

bool has_key(const Node* table, std::string_view key) {
    return table != nullptr && table->find(key) != nullptr;
}

/// Whether any section names no backend or a language, as edition 1 did.
bool has_v1_section(const Node& root) {
    const Node* kernels = root.find("kernel");
    if (kernels == nullptr || !kernels->is_table()) {
        return false;
    }
    return std::ranges::any_of(kernels->entries(), [](const document::Entry& entry) {
        return entry.value.is_table() &&
               (entry.value.find("language") != nullptr || entry.value.find("backend") == nullptr);
    });
}

/// The edition of a file without general.edition: the newest one whose marks it bears.
Edition guess_edition(const Node& root) {
    const Node* general = root.find("general");
    const bool v2_key = has_key(general, "universal") || has_key(general, "cuda-minver") ||
                        has_key(general, "cuda-maxver");
    if (v2_key) {
        return Edition::v2;
    }
    const bool has_version = has_key(general, "version");
    const bool has_license = has_key(general, "license");
    if (!has_key(general, "backends") && !has_version && !has_license) {
        const bool v1 = has_key(root.find("torch"), "universal") || has_v1_section(root);
        return v1 ? Edition::v1 : Edition::v2;
    }
    const bool has_framework = root.find("torch") != nullptr ||
                               root.find("torch-noarch") != nullptr ||
                               root.find("tvm-ffi") != nullptr;
    const bool v4 = has_version && has_license && has_framework;
    // [torch-noarch] came with edition 4.
    return v4 || root.find("torch-noarch") != nullptr ? Edition::v4 : Edition::v3;
}

/// Edition 1 and 2 knew no list of backends: it follows from the sections.
std::vector<Located<BackendId>> derived_backends(const Config& config) {
    std::vector<Located<BackendId>> out;
    const bool universal = std::holds_alternative<TorchNoarch>(config.framework);
    for (const BackendId backend : backend::kAllBackends) {
        const bool listed =
            universal ? backend != BackendId::tpu : !sections_of(config, backend).empty();
        if (listed) {
            out.push_back({.value = backend, .span = config.framework_span});
        }
    }
    return out;
}

void warn_old_edition(const Config& config, const Node& root, Diagnostics& diagnostics) {
    const Node* general = root.find("general");
    const Span span = general == nullptr ? root.span : general->key_span;
    diagnostics.warning("old-edition",
                        span,
                        fmt::format("this is a file of edition {}; the current edition is 5",
                                    static_cast<int>(config.edition)),
                        {"run 'kernel-builder update-build' to rewrite it, comments are kept"});
    if (config.license.value.empty() && config.edition < Edition::v4) {
        diagnostics.warning("missing-license",
                            span,
                            "[general] names no licence, which editions from 4 on need",
                            {"add for example license = \"apache-2.0\""});
    }
}

} // namespace

EditionChoice choose_edition(const Node& root, Diagnostics& diagnostics) {
    const Node* general = root.find("general");
    const Node* edition = general == nullptr ? nullptr : general->find("edition");
    if (edition == nullptr) {
        return {.edition = guess_edition(root), .explicit_key = false};
    }
    if (!edition->is_unsigned() || edition->as_unsigned() > UINT32_MAX) {
        const std::string found =
            edition->is(Node::Kind::integer) ? "this number" : std::string{edition->kind_text()};
        diagnostics.error(
            "bad-edition",
            edition->span,
            fmt::format("'edition' in [general] must be the integer 5, not {}", found));
        // What else is wrong is best said by the current edition.
        return {.edition = Edition::v5, .explicit_key = true};
    }
    const std::uint64_t number = edition->as_unsigned();
    if (number == 5) {
        return {.edition = Edition::v5, .explicit_key = true};
    }
    std::vector<std::string> notes;
    if (number > 5) {
        notes.emplace_back("upgrade kernel-builder");
    } else {
        notes.emplace_back(
            "editions before 5 carry no 'edition' key: remove it and run "
            "'kernel-builder update-build', or write 5 if the file is a current one");
    }
    diagnostics.error("bad-edition",
                      edition->span,
                      fmt::format("edition {} cannot be read, the current edition is 5", number),
                      std::move(notes));
    return {.edition = std::nullopt, .explicit_key = true};
}

std::optional<Config> read(const Node& root, Diagnostics& diagnostics) {
    Diagnostics found;
    const auto give_up = [&]() -> std::optional<Config> {
        diagnostics.append(std::move(found));
        return std::nullopt;
    };
    if (!root.is_table()) {
        found.error("wrong-type",
                    root.span,
                    fmt::format("a build configuration is a table, not {}", root.kind_text()));
        return give_up();
    }
    const EditionChoice choice = choose_edition(root, found);
    if (!choice.edition) {
        return give_up();
    }
    const DecodeContext context{.edition = *choice.edition, .diagnostics = &found};
    Config config{.edition = context.edition, .span = {.file = root.span.file}};
    Reader reader = open_table(context, TableId::root, root, "build.toml");
    if (const Node* general = reader.table("general")) {
        decode_general(context, *general, config);
    }
    config.sections = decode_sections(context, root);
    decode_framework(context, root, config);
    if (context.edition <= Edition::v2) {
        config.backends = derived_backends(config);
    }
    if (found.has_errors()) {
        return give_up();
    }
    if (!choice.explicit_key) {
        warn_old_edition(config, root, found);
    }
    diagnostics.append(std::move(found));
    return config;
}

} // namespace kb::config
