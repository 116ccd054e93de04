// SPDX-License-Identifier: Apache-2.0
#include "config/schema_table.hpp"

#include "document/json.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>

using kb::backend::BackendId;
using kb::config::Edition;
using kb::config::TableId;
using kb::document::Node;

namespace {

using Keys = std::vector<std::string>;

Keys sorted(Keys keys) {
    std::ranges::sort(keys);
    return keys;
}

Keys table_keys(TableId table, std::optional<BackendId> backend = std::nullopt) {
    const auto keys = kb::config::keys_of(table, Edition::v5, backend);
    return sorted({keys.begin(), keys.end()});
}

Keys required_keys(TableId table) {
    const auto keys = kb::config::required_keys_of(table, Edition::v5);
    return sorted({keys.begin(), keys.end()});
}

Keys names_of(const Node& schema) {
    Keys out;
    for (const auto& entry : schema.find("properties")->entries()) {
        out.push_back(entry.key);
    }
    return sorted(out);
}

Keys strings_of(const Node* list) {
    Keys out;
    if (list != nullptr) {
        for (const Node& item : list->as_array()) {
            out.push_back(item.as_string());
        }
    }
    return sorted(out);
}

Node schema() {
    const auto path = kb::test::source_dir() / "schemas" / "build-toml.schema.json";
    auto root = kb::document::parse_json(kb::test::read_text(path), {.name = path.string()});
    REQUIRE(root);
    return *root;
}

} // namespace

TEST_CASE("the editor schema has the keys that the reader has", "[config][schema]") {
    const Node root = schema();
    const Node& defs = *root.find("$defs");
    const auto [id, name] = GENERATE(table<TableId, std::string>({
        {TableId::general, "general"},
        {TableId::general_cuda, "general-cuda"},
        {TableId::general_neuron, "general-neuron"},
        {TableId::general_tpu, "general-tpu"},
        {TableId::general_xpu, "general-xpu"},
        {TableId::general_hub, "general-hub"},
        {TableId::kernel_dependency, "kernel-dependency"},
        {TableId::torch, "torch"},
        {TableId::torch_noarch, "torch-noarch"},
        {TableId::tvm_ffi, "tvm-ffi"},
    }));
    CAPTURE(name);
    const Node* def = defs.find(name);
    REQUIRE(def != nullptr);
    CHECK(names_of(*def) == table_keys(id));
    CHECK(strings_of(def->find("required")) == required_keys(id));
    CHECK(def->find("additionalProperties")->as_bool() == false);
}

TEST_CASE("the editor schema has one kind of section for each backend", "[config][schema]") {
    const Node root = schema();
    CHECK(names_of(root) == table_keys(TableId::root));
    std::size_t sections = 0;
    for (const BackendId backend : kb::backend::kAllBackends) {
        const std::string name = "kernel-" + std::string{kb::backend::to_text(backend)};
        const Node* def = root.find("$defs")->find(name);
        CAPTURE(name);
        REQUIRE((def != nullptr) == kb::backend::has_kernel_sections(backend));
        if (def != nullptr) {
            CHECK(names_of(*def) == table_keys(TableId::kernel, backend));
            CHECK(strings_of(def->find("required")) == required_keys(TableId::kernel));
            ++sections;
        }
    }
    CHECK(sections == 5);
}

TEST_CASE("the editor schema spells dependencies and backends as we do", "[config][schema]") {
    const Node root = schema();
    const auto native = kb::config::native_dependency_names();
    CHECK(strings_of(root.find("$defs")->find("native-dependency")->find("enum")) ==
          sorted({native.begin(), native.end()}));
    Keys backends;
    for (const BackendId backend : kb::backend::kAllBackends) {
        backends.emplace_back(kb::backend::to_text(backend));
    }
    CHECK(strings_of(root.find("$defs")->find("backend")->find("enum")) == sorted(backends));
}

TEST_CASE("no table has a key twice in one edition", "[config][schema]") {
    for (int edition = 1; edition <= 5; ++edition) {
        for (int table = 0; table <= static_cast<int>(TableId::kernel); ++table) {
            auto keys =
                kb::config::keys_of(static_cast<TableId>(table), static_cast<Edition>(edition));
            std::ranges::sort(keys);
            CAPTURE(edition, table);
            CHECK(std::ranges::adjacent_find(keys) == keys.end());
        }
    }
}
