// SPDX-License-Identifier: Apache-2.0
// Judges every build.toml whose path stands on a line of stdin and prints one JSON record a line:
// the other half of oracle_diff.py. One process for all files, so that hundreds of mutations cost
// nothing.
#include "config/config.hpp"
#include "document/json.hpp"
#include "document/toml.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

namespace {

using kb::document::Node;

std::string slurp(const std::string& path) {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

Node dependency_node(const kb::config::KernelDependency& dependency) {
    Node out = Node::table({{"repo-id", dependency.repo_id.value}});
    if (dependency.version) {
        out.set("version", dependency.version->value);
    }
    if (dependency.revision) {
        out.set("revision", dependency.revision->value);
    }
    return out;
}

void describe(const kb::config::Config& config, Node& out) {
    out.set("edition", static_cast<int>(config.edition));
    Node backends = Node::array();
    for (const auto& backend : config.backends) {
        backends.push(kb::backend::to_text(backend.value));
    }
    out.set("backends", std::move(backends));
    Node depends = Node::table();
    for (const kb::backend::BackendId backend : kb::backend::kAllBackends) {
        Node list = Node::array();
        for (const auto& dependency : kb::config::kernel_depends_for(config, backend)) {
            list.push(dependency_node(dependency));
        }
        if (!list.as_array().empty()) {
            depends.set(kb::backend::to_text(backend), std::move(list));
        }
    }
    out.set("kernel-depends", std::move(depends));
}

Node judge(const std::string& path) {
    kb::Diagnostics diagnostics;
    const auto root = kb::document::parse_toml(slurp(path), {.name = "build.toml"}, diagnostics);
    const auto config = root ? kb::config::read(*root, diagnostics) : std::nullopt;
    Node out = Node::table({{"file", path}, {"accepted", config.has_value()}});
    if (config) {
        describe(*config, out);
    }
    Node items = Node::array();
    for (const kb::Diagnostic& item : diagnostics.items()) {
        items.push(Node::table({{"id", item.id},
                                {"error", item.severity == kb::Severity::error},
                                {"line", item.span.line},
                                {"column", item.span.column},
                                {"message", item.message}}));
    }
    out.set("diagnostics", std::move(items));
    return out;
}

} // namespace

int main() {
    std::string path;
    while (std::getline(std::cin, path)) {
        std::cout << kb::document::write_json(judge(path), {.indent = 0});
    }
    return 0;
}
