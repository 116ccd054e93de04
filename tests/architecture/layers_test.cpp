// SPDX-License-Identifier: Apache-2.0
#include "architecture/source_tree.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace kb::test {
namespace {

/// Third-party headers and the one module that may include them.
struct Owner {
    std::string_view prefix{};
    std::string_view module{};
};

constexpr std::array<Owner, 11> kOwners{{{"CLI/", "cli"},
                                         {"toml++/", "document"},
                                         {"nlohmann/", "document"},
                                         {"curl/", "http"},
                                         {"boost/", "http"},
                                         {"openssl/ssl", "http"},
                                         {"openssl/", "digest"},
                                         {"archive", "store"},
                                         {"sqlite3.h", "registry"},
                                         {"catch2/", "(tests)"},
                                         {"linux/landlock.h", "sandbox"}}};

/// What a pure module cannot include: files, clocks, environment, processes, sockets, threads.
constexpr std::array<std::string_view, 14> kImpure{"filesystem",
                                                   "fstream",
                                                   "iostream",
                                                   "thread",
                                                   "mutex",
                                                   "atomic",
                                                   "future",
                                                   "chrono",
                                                   "unistd.h",
                                                   "fcntl.h",
                                                   "sys/",
                                                   "condition_variable",
                                                   "random",
                                                   "sys/socket.h"};

std::vector<std::string> breaches_of(const SourceFile& file) {
    std::vector<std::string> out;
    const auto breach = [&](std::size_t line, const std::string& why) {
        out.push_back(shown(file) + ":" + std::to_string(line + 1) + ": " + why);
    };
    const auto module = modules().find(file.module);
    if (module == modules().end() && !file.module.empty()) {
        return out; // a folder of contracts that is no library yet
    }
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
        const std::string_view line = trim(file.lines[i]);
        if (!line.starts_with("#include")) {
            continue;
        }
        const bool quoted = line.find('"') != std::string_view::npos;
        const std::size_t first = line.find_first_of("\"<") + 1;
        const std::string_view target =
            line.substr(first, line.find_first_of("\">", first) - first);
        if (quoted) {
            if (target.find("..") != std::string_view::npos) {
                breach(i, "an include goes through '..'");
            }
            const std::string folder{target.substr(0, target.find('/'))};
            if (!modules().contains(folder) || folder == file.module || folder == "base" ||
                file.module.empty()) {
                continue; // generated files, test support, own folder
            }
            if (module == modules().end() || !module->second.depends.contains(folder)) {
                breach(i,
                       file.module + " includes " + folder + ", which kb_module() does not list");
            }
            continue;
        }
        for (const Owner& owner : kOwners) {
            if (target.starts_with(owner.prefix) && !target.starts_with("archives/")) {
                if (file.module != owner.module && !file.is_test) {
                    breach(i,
                           "<" + std::string{target} + "> belongs to " + std::string{owner.module});
                }
                if (file.is_header) {
                    breach(i,
                           "<" + std::string{target} +
                               "> is a third-party type in a public header");
                }
                break;
            }
        }
        if (module != modules().end() && module->second.is_pure && !file.is_test) {
            for (const std::string_view impure : kImpure) {
                if (target == impure || (impure.ends_with('/') && target.starts_with(impure))) {
                    breach(i, file.module + " is pure but includes <" + std::string{target} + ">");
                }
            }
        }
    }
    return out;
}

TEST_CASE("a module includes only what kb_module() lists, and libraries have one owner",
          "[layers]") {
    REQUIRE(modules().size() > 1);
    std::vector<std::string> breaches;
    for (const SourceFile& file : sources()) {
        std::ranges::copy(breaches_of(file), std::back_inserter(breaches));
    }
    INFO(join(breaches, "\n"));
    CHECK(breaches.empty());
}

TEST_CASE("the check sees an upward include, a foreign library and an impure header", "[layers]") {
    const SourceFile bad{.path = source_dir() / "src/base/bad.cpp",
                         .module = "base",
                         .lines = {"#include \"digest/digest.hpp\"",
                                   "#include <CLI/CLI.hpp>",
                                   "#include <filesystem>",
                                   "#include \"../x.hpp\""}};
    CHECK(breaches_of(bad).size() == 4);
}

TEST_CASE("every kb_module() dependency points down", "[layers]") {
    const std::map<std::string, int> level{
        {"base", 0},    {"digest", 1},    {"document", 1}, {"binfmt", 1},  {"backend", 1},
        {"sys", 1},     {"config", 2},    {"hub", 2},      {"check", 2},   {"http", 2},
        {"store", 2},   {"sandbox", 2},   {"plan", 3},     {"package", 3}, {"generate", 4},
        {"project", 4}, {"toolchain", 4}, {"build", 5},    {"upload", 5},  {"registry", 5},
        {"cli", 6}};
    for (const auto& [name, module] : modules()) {
        CAPTURE(name);
        REQUIRE(level.contains(name));
        for (const std::string& dep : module.depends) {
            CAPTURE(dep);
            REQUIRE(level.contains(dep));
            // package and plan stand on one level and do not know each other; everything else is
            // strictly lower.
            CHECK(level.at(dep) < level.at(name));
        }
        if (module.is_pure) {
            for (const std::string& dep : module.depends) {
                CAPTURE(dep);
                CHECK(modules().at(dep).is_pure);
            }
        }
    }
}

TEST_CASE("every module opens with a README of 3 to 15 lines", "[layers]") {
    for (const auto& [name, module] : modules()) {
        CAPTURE(name);
        const std::string text = read_text(source_dir() / "src" / name / "README.md");
        const auto lines = split(trim(text), '\n').size();
        CHECK(lines >= 3);
        CHECK(lines <= 20);
    }
}

} // namespace
} // namespace kb::test
