// SPDX-License-Identifier: Apache-2.0
#include "generate/cmake_tables.hpp"

#include "backend/mounts.hpp"
#include "base/text.hpp"
#include "generate/test_world.hpp"
#include "plan/plan.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace kb::generate {

namespace {

using backend::BackendId;
using List = std::vector<std::string>;

/// What decides an object, besides the text of its files.
struct Facts {
    std::string standard{};
    std::set<std::string> definitions{};
    std::set<std::string> include{};
    std::set<std::string> flags{};

    bool operator==(const Facts&) const = default;

    [[nodiscard]] std::string text() const {
        return fmt::format("c++{}\n-D {}\n-I {}\n{}\n",
                           standard,
                           join(List(definitions.begin(), definitions.end()), " "),
                           join(List(include.begin(), include.end()), " "),
                           join(List(flags.begin(), flags.end()), " "));
    }
};

/// The generated project's tables and calls, read as CMake reads them, and evaluated as
/// cmake/kernel.cmake does. tests/e2e/compile_commands.sh holds the real one to the same.
class CmakeModel {
public:
    explicit CmakeModel(const std::string& text) {
        std::size_t at = 0;
        while (at < text.size()) {
            const std::size_t open = text.find('(', at);
            const std::size_t line = text.find('\n', at);
            if (open == std::string::npos || line < open) {
                at = line == std::string::npos ? text.size() : line + 1;
                continue;
            }
            const std::string command{trim(std::string_view{text}.substr(at, open - at))};
            at = open + 1;
            add(command, arguments(text, at));
        }
    }

    /// By source; device flags are those of the toolkit.
    [[nodiscard]] std::map<std::string, Facts> facts(const std::string& backend,
                                                     const std::string& toolkit,
                                                     const std::string& torch,
                                                     const std::string& ops) const {
        std::map<std::string, Facts> all;
        for (const List& call : calls_) {
            add_call(call, backend, toolkit, all);
        }
        for (auto& [source, facts] : all) {
            add_needs(source, backend, toolkit, torch, ops, facts);
        }
        return all;
    }

private:
    static List arguments(const std::string& text, std::size_t& at) {
        List list;
        while (text.at(at) != ')') {
            if (text[at] == '"') {
                list.push_back(quoted(text, ++at));
            } else if (text[at] == ' ' || text[at] == '\n') {
                ++at;
            } else {
                const std::size_t end = text.find_first_of(" \n)", at);
                list.push_back(text.substr(at, end - at));
                at = end;
            }
        }
        return list;
    }

    static std::string quoted(const std::string& text, std::size_t& at) {
        std::string out;
        for (; text.at(at) != '"'; ++at) {
            at += text[at] == '\\' ? 1U : 0U;
            out += text.at(at);
        }
        ++at;
        out = replace_all(out, "\\$<SEMICOLON>", ";");
        return replace_all(out, "$<ANGLE-R>", ">");
    }

    void add(const std::string& command, List list) {
        if (command == "set") {
            const std::string name = list.front();
            list.erase(list.begin());
            tables_[name] = std::move(list);
        } else if (command == "kb_kernel" || command == "kb_binding" ||
                   command == "kb_dependency") {
            list.insert(list.begin(), command);
            calls_.push_back(std::move(list));
        }
    }

    [[nodiscard]] const List& table(const std::string& name) const {
        static const List kNone;
        const auto found = tables_.find(name);
        return found == tables_.end() ? kNone : found->second;
    }

    [[nodiscard]] static List keyword(const List& call, std::string_view name) {
        static const std::set<std::string_view> kWords{"BACKEND",
                                                       "MIN_TOOLKIT",
                                                       "FIXED_ARCHS",
                                                       "DEPENDS",
                                                       "CXX_SOURCES",
                                                       "CXX_FLAGS",
                                                       "DEVICE_SOURCES",
                                                       "DEVICE_FLAGS",
                                                       "HEADERS",
                                                       "INCLUDES",
                                                       "SOURCES",
                                                       "DEFINITIONS",
                                                       "REPOSITORY",
                                                       "TAG"};
        List values;
        bool inside = false;
        for (const std::string& word : call) {
            if (kWords.contains(word)) {
                inside = word == name;
            } else if (inside) {
                values.push_back(word);
            }
        }
        return values;
    }

    void add_call(const List& call,
                  const std::string& backend,
                  const std::string& toolkit,
                  std::map<std::string, Facts>& all) const {
        if (call.front() == "kb_binding") {
            for (const std::string& source : keyword(call, "SOURCES")) {
                extend(all[source], keyword(call, "CXX_FLAGS"), keyword(call, "INCLUDES"));
            }
            return;
        }
        const List of = keyword(call, "BACKEND");
        const List minimum = keyword(call, "MIN_TOOLKIT");
        const auto version = Version::parse(toolkit.empty() ? "0" : toolkit);
        REQUIRE(version);
        if (call.front() != "kb_kernel" || of != List{backend} ||
            (!minimum.empty() && *version < *Version::parse(minimum.front()))) {
            return;
        }
        for (const std::string& source : keyword(call, "CXX_SOURCES")) {
            extend(all[source], keyword(call, "CXX_FLAGS"), keyword(call, "INCLUDES"));
            add_dependencies(call, all[source]);
        }
        List flags = tables_.contains("KB_FLAGS_" + call[1] + "_" + toolkit)
                         ? table("KB_FLAGS_" + call[1] + "_" + toolkit)
                         : keyword(call, "DEVICE_FLAGS");
        const List& rules = table("KB_DEVICE_FLAGS_" + backend);
        flags.insert(flags.end(), rules.begin(), rules.end());
        for (const std::string& arch : table("KB_ARCHS_" + call[1] + "_" + toolkit)) {
            const std::string number = replace_all(replace_all(arch, "+PTX", ""), ".", "");
            flags.push_back(fmt::format("-gencode=arch=compute_{0},code=sm_{0}", number));
            if (arch.ends_with("+PTX")) {
                flags.push_back(fmt::format("-gencode=arch=compute_{0},code=compute_{0}", number));
            }
        }
        for (const std::string& source : keyword(call, "DEVICE_SOURCES")) {
            extend(all[source], flags, keyword(call, "INCLUDES"));
            add_dependencies(call, all[source]);
        }
    }

    static void extend(Facts& facts, const List& flags, const List& include) {
        for (const std::string& flag : flags) {
            if (flag.starts_with("-D")) {
                facts.definitions.insert(flag.substr(2));
            } else {
                facts.flags.insert(flag);
            }
        }
        for (const std::string& dir : include) {
            facts.include.insert(dir == "." ? "/src" : "/src/" + dir);
        }
    }

    void add_dependencies(const List& call, Facts& facts) const {
        for (const std::string& name : keyword(call, "DEPENDS")) {
            for (const List& other : calls_) {
                if (other.front() == "kb_dependency" && other[1] == name) {
                    // The place is the machine's; the folders below it are the row's.
                    for (const std::string& dir : keyword(other, "INCLUDES")) {
                        facts.include.insert("dependency " + name + "/" + dir);
                    }
                }
            }
        }
    }

    void add_needs(const std::string& source,
                   const std::string& backend,
                   const std::string& toolkit,
                   const std::string& torch,
                   const std::string& ops,
                   Facts& facts) const {
        const auto is_in = [&](std::string_view name) {
            const List& list = table(fmt::format("KB_{}_SOURCES_{}", name, backend));
            return std::ranges::find(list, source) != list.end();
        };
        for (const std::string& definition : table("KB_DEFINITIONS_" + backend)) {
            facts.definitions.insert(definition);
        }
        for (const std::string& dir : table("KB_COMMON_INCLUDES")) {
            facts.include.insert("/src/" + dir);
        }
        const bool framework = is_in("FRAMEWORK");
        facts.standard = table(framework ? "KB_CXX_STANDARD_" + torch
                                         : "KB_CXX_STANDARD_" + backend + "_" + toolkit)
                             .at(0);
        if (framework) {
            facts.include.insert("torch");
            for (const std::string& target : table("KB_TORCH_TARGET_VERSION_" + backend)) {
                facts.definitions.insert("TORCH_TARGET_VERSION=" + target);
            }
        }
        if (is_in("PYTHON")) {
            facts.include.insert("python");
            facts.definitions.insert("Py_LIMITED_API=" + table("KB_PY_LIMITED_API").at(0));
        }
        if (is_in("OPS")) {
            facts.definitions.insert("TORCH_EXTENSION_NAME=" + ops);
        }
    }

    std::map<std::string, List> tables_;
    std::vector<List> calls_;
};

/// An include folder of the sandbox in the words of the model; nothing for what CMake finds by
/// itself.
std::optional<std::string> include_name(const std::string& dir) {
    if (dir.starts_with("/toolchain/torch-")) {
        return "torch";
    }
    if (dir == backend::kPythonMount) {
        return "python";
    }
    if (dir.starts_with("/toolchain/cutlass-3.6")) {
        return "dependency cutlass_3_6/" +
               dir.substr(std::string_view{"/toolchain/cutlass-3.6/"}.size());
    }
    if (dir.starts_with("/toolchain/cuda-")) {
        return std::nullopt;
    }
    return dir.ends_with('/') ? dir.substr(0, dir.size() - 1) : dir;
}

Facts facts_of(const plan::Tu& tu) {
    // What both compilers are told for every file, and what names files.
    static const std::set<std::string> kEverywhere{"-O3", "-fPIC", "-fno-gnu-unique", "-c"};
    Facts facts;
    for (std::size_t i = 1; i < tu.command.size(); ++i) {
        const std::string word{tu.command[i]};
        if (word == "-o" || word == "--keep-dir") {
            ++i;
        } else if (word == "-isystem" || word.starts_with("-I")) {
            const auto name =
                include_name(word == "-isystem" ? std::string{tu.command[++i]} : word.substr(2));
            if (name) {
                facts.include.insert(*name);
            }
        } else if (word.starts_with("-std=c++")) {
            facts.standard = word.substr(8);
        } else if (word.starts_with("-D")) {
            if (word != "-DNDEBUG") {
                facts.definitions.insert(word.substr(2));
            }
        } else if (!kEverywhere.contains(word) && word != "--keep" &&
                   !word.starts_with("-ccbin=") && !word.starts_with("-frandom-seed=") &&
                   !word.starts_with("-Xcompiler=-fPIC,") && !word.starts_with("/src/")) {
            facts.flags.insert(word);
        }
    }
    return facts;
}

constexpr std::string_view kSectionsToml = R"toml(
[general]
name = "fast-relu"
version = 3
edition = 5
license = "Apache-2.0"
backends = ["cuda", "cpu"]

[torch]
include = ["./include/"]
cxx-flags = ["-DBINDING=1"]
src = ["torch-ext/torch_binding.cpp", "torch-ext/helper.cpp"]

[kernel.fast]
backend = "cuda"
depends = ["torch", "cutlass_3_6"]
cuda-capabilities = ["8.0", "9.0"]
cuda-flags = ["-DTEXT=\"a b;c\"", "-static-global-template-stub=false"]
cxx-flags = ["-fno-exceptions"]
include = ["cuda", "."]
src = ["cuda/relu.cu", "./cuda/both.cu", "cuda/host.cpp", "cuda/relu.cuh"]

[kernel."odd id"]
backend = "cuda"
depends = []
cuda-capabilities = ["8.0", "8.9"]
cuda-minver = "12.6"
cuda-flags = ["-lineinfo"]
src = ["cuda/both.cu", "cuda/with_torch.cu"]

[kernel.slow]
backend = "cpu"
depends = []
cxx-flags = ["-ffast-math"]
src = ["cpu/relu.cpp"]

[kernel.slower]
backend = "cpu"
depends = []
cxx-flags = ["-O1"]
src = ["cpu/uses_python.cpp", "cpu/relu.cpp"]
)toml";

plan::SourceSnapshot sections_snapshot() {
    plan::SourceSnapshot snapshot;
    const auto add = [&](std::string_view path, std::string_view text) {
        snapshot.files.push_back(plan::scan_source(RelPath::literal(path), text));
    };
    add("torch-ext/torch_binding.cpp",
        "#include \"registration.h\"\n#include <torch/library.h>\nTORCH_EXTENSION_NAME\n");
    add("torch-ext/registration.h", "#include <Python.h>\n");
    add("torch-ext/helper.cpp", "#include <vector>\n");
    add("cuda/relu.cu", "#include \"relu.cuh\"\n");
    add("cuda/relu.cuh", "\n");
    add("cuda/both.cu", "\n");
    add("cuda/host.cpp", "const char* name = TORCH_EXTENSION_NAME;\n");
    add("cuda/with_torch.cu", "#include <ATen/ATen.h>\n");
    add("cpu/relu.cpp", "\n");
    add("cpu/uses_python.cpp", "#include <Python.h>\n");
    add("csrc/common.h", "\n");
    return snapshot;
}

/// Every toolkit can be had: what is compared is decided without one.
plan::SupportMatrix open_matrix() {
    plan::SupportMatrix matrix = plan::default_support_matrix();
    for (plan::ToolkitRow& toolkit : matrix.toolkits) {
        toolkit.unavailable.clear();
        toolkit.host_compiler_max.reset();
    }
    matrix.rows.clear();
    for (const plan::FrameworkRow& torch : matrix.torch) {
        for (const plan::ToolkitRow& toolkit : matrix.toolkits) {
            if (toolkit.backend == BackendId::cpu || toolkit.backend == BackendId::cuda) {
                matrix.rows.push_back({.torch = torch.version,
                                       .backend = toolkit.backend,
                                       .backend_version = toolkit.version,
                                       .platforms = {backend::Platform{}}});
            }
        }
    }
    return matrix;
}

} // namespace

TEST_CASE("the CMake project and build.ninja tell the compilers the same", "[generate][project]") {
    const std::string stable =
        GENERATE(as<std::string>{}, "", "stable-abi = { cuda = \"2.11\" }\n");
    const config::Config config =
        test::config_of(replace_all(std::string{kSectionsToml}, "[torch]\n", "[torch]\n" + stable));
    const plan::SupportMatrix matrix = open_matrix();
    const plan::SourceSnapshot snapshot = sections_snapshot();
    Diagnostics diagnostics;
    const auto plan = plan::make({.config = config,
                                  .matrix = matrix,
                                  .snapshot = snapshot,
                                  .lock = {},
                                  .selection = {},
                                  .unique_id = "abc1234"},
                                 diagnostics);
    REQUIRE(plan);
    std::string text;
    for (const FileImage& file : project_files(
             {.config = config, .matrix = matrix, .snapshot = snapshot, .unique_id = "abc1234"})) {
        text += file.path.text() == "CMakeLists.txt" ? file.content : "";
    }
    const CmakeModel model{text};
    // 9 torch versions on the CPU, and with 8 toolkits each or once for the stable ABI.
    CHECK(plan->variants.size() == 9U + (stable.empty() ? 9U * 8U : 8U));
    for (const plan::PlannedVariant& variant : plan->variants) {
        const backend::Variant& what = variant.name.variant();
        auto expected = model.facts(std::string{backend::to_text(what.backend)},
                                    what.backend_version.to_text(),
                                    variant.torch.to_text(),
                                    variant.ops_id);
        CHECK(expected.size() == variant.tus.size());
        for (const std::string_view id : variant.tus) {
            const plan::Tu& tu = plan->tu(id);
            CAPTURE(variant.name.text(), tu.source.text());
            CHECK(facts_of(tu).text() == expected[tu.source.text()].text());
        }
    }
}

TEST_CASE("torch-free code keeps its C++ standard whatever torch is there", "[generate][project]") {
    const config::Config config = test::config_of(kSectionsToml);
    const plan::SourceSnapshot snapshot = sections_snapshot();
    const std::string tables = cmake_tables(
        {.config = config, .matrix = plan::default_support_matrix(), .snapshot = snapshot});
    const auto has = [&](std::string_view line) {
        return tables.find(std::string{line} + "\n") != std::string::npos;
    };
    CHECK(has("set(KB_CXX_STANDARD_2.11 17)"));
    CHECK(has("set(KB_CXX_STANDARD_cpu_ 20)"));
    CHECK(has("set(KB_CXX_STANDARD_cuda_11.8 17)"));
    CHECK(has("set(KB_CXX_STANDARD_cuda_13.0 20)"));
    CHECK(has(
        "set(KB_FRAMEWORK_SOURCES_cuda \"cuda/with_torch.cu\" \"torch-ext/torch_binding.cpp\")"));
    CHECK(has("set(KB_OPS_SOURCES_cuda \"cuda/host.cpp\" \"torch-ext/torch_binding.cpp\")"));
    CHECK(
        has("set(KB_PYTHON_SOURCES_cpu \"cpu/uses_python.cpp\" \"torch-ext/torch_binding.cpp\")"));
    CHECK(has("set(KB_COMMON_INCLUDES csrc)"));
}

} // namespace kb::generate
