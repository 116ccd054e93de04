// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "build/inspect.hpp"
#include "build/loading.hpp"
#include "build/python_child.hpp"
#include "build/torch_version.hpp"
#include "document/json.hpp"
#include "sys/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace kb::build {

namespace {

using sys::Path;

// In a child of its own: importing torch runs a lot of foreign code.
constexpr std::string_view kQuestion = R"(import json, os, sys
out = {"python": "%d.%d.%d" % sys.version_info[:3]}
try:
    import torch
    out["torch"] = torch.__version__
    out["cuda"] = torch.version.cuda
    lib = os.path.join(os.path.dirname(torch.__file__), "lib")
    site = os.path.dirname(os.path.dirname(torch.__file__))
    out["directories"] = [lib]
    nvidia = os.path.join(site, "nvidia")
    if os.path.isdir(nvidia):
        out["directories"] += sorted(os.path.join(nvidia, d, "lib") for d in os.listdir(nvidia))
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        out["devices"] = ["%d.%d" % torch.cuda.get_device_capability(i) for i in range(count)]
except Exception as problem:
    out["problem"] = "importing torch fails: " + str(problem).split("\n")[0]
print(json.dumps(out))
)";

std::vector<std::string> texts_of(const document::Node& node, std::string_view key) {
    std::vector<std::string> out;
    const document::Node* list = node.find(key);
    if (list != nullptr && list->is_array()) {
        for (const document::Node& item : list->as_array()) {
            if (item.is_string()) {
                out.push_back(item.as_string());
            }
        }
    }
    return out;
}

void ask_python(sys::ProcessRunner& processes,
                const sys::EnvironmentMap& environment,
                const std::string& python,
                HostFacts& out) {
    sys::ProcessSpec question = python_child(python, kQuestion, environment);
    question.timeout = std::chrono::seconds{120};
    question.max_capture = 1UL << 20U;
    const auto answer = processes.run(question);
    if (!answer) {
        out.python_problem = fmt::format("'{}' cannot be started", python);
        return;
    }
    const auto node = answer->status.ok()
                          ? document::parse_json(trim(answer->out), {})
                          : Result<document::Node>{Error{.message = answer->status.to_text()}};
    if (!node) {
        out.python_problem =
            fmt::format("'{}' does not answer: {}", python, node.error().to_text());
        return;
    }
    out.python = leading_version(node->text_or("python"));
    out.torch = leading_version(node->text_or("torch"));
    out.torch_cuda = leading_version(node->text_or("cuda"));
    out.library_directories = texts_of(*node, "directories");
    out.devices = texts_of(*node, "devices");
    out.python_problem = node->text_or("problem");
}

void add_configured(sys::FileSystem& fs, std::vector<Path>& out) {
    const auto entries = fs.list("/etc/ld.so.conf.d");
    if (!entries) {
        return; // a system without it has the usual directories alone
    }
    for (const sys::DirEntry& entry : *entries) {
        const auto text = fs.read_file(Path{"/etc/ld.so.conf.d"} / entry.name, 1UL << 20U);
        for (const std::string_view line :
             text ? split(*text, '\n') : std::vector<std::string_view>{}) {
            if (trim(line).starts_with('/')) {
                out.emplace_back(trim(line));
            }
        }
    }
}

std::vector<Path> search_directories(sys::FileSystem& fs, const HostFacts& facts, const Path& own) {
    std::vector<Path> out{own};
    out.insert(out.end(), facts.library_directories.begin(), facts.library_directories.end());
    add_configured(fs, out);
    for (const char* directory : {"/lib/x86_64-linux-gnu",
                                  "/usr/lib/x86_64-linux-gnu",
                                  "/lib/aarch64-linux-gnu",
                                  "/usr/lib/aarch64-linux-gnu",
                                  "/lib64",
                                  "/usr/lib64",
                                  "/lib",
                                  "/usr/lib"}) {
        out.emplace_back(directory);
    }
    return out;
}

HostLibrary describe(std::string name, const Path& path, const binfmt::SharedObject& object) {
    HostLibrary out{.name = std::move(name), .path = path.string()};
    out.needed.assign(object.needed.begin(), object.needed.end());
    for (const binfmt::Symbol& symbol : object.exports) {
        out.exports.emplace(symbol.name);
        if (!symbol.version.empty()) {
            out.versions.emplace(symbol.version);
        }
    }
    return out;
}

} // namespace

HostFacts read_host_facts(sys::FileSystem& fs,
                          sys::ProcessRunner& processes,
                          const sys::EnvironmentMap& environment,
                          const std::string& python) {
    HostFacts out{.nvidia_driver = sys::exists(fs, "/dev/nvidiactl")};
#ifdef __aarch64__
    out.platform.cpu = backend::Cpu::aarch64;
#endif
    ask_python(processes, environment, python, out);
    const std::string variable = sys::lookup(environment, "LD_LIBRARY_PATH").value_or("");
    for (const std::string_view entry : split(variable, ':')) {
        if (entry.starts_with('/')) {
            out.library_directories.emplace_back(entry);
        }
    }
    return out;
}

std::vector<HostLibrary> read_host_libraries(sys::FileSystem& fs,
                                             const HostFacts& facts,
                                             const binfmt::SharedObject& object,
                                             const sys::Path& directory) {
    const std::vector<Path> directories = search_directories(fs, facts, directory);
    std::vector<HostLibrary> out;
    std::set<std::string> asked;
    std::vector<std::string> queue{object.needed.begin(), object.needed.end()};
    for (std::size_t i = 0; i < queue.size(); ++i) {
        const std::string name = queue[i];
        if (!asked.insert(name).second) {
            continue;
        }
        for (const Path& place : directories) {
            if (!sys::exists(fs, place / name)) {
                continue;
            }
            const auto found = inspect_file(place / name, {.paths = InspectOptions::Paths::skip});
            if (found && found->architecture == object.architecture) {
                out.push_back(describe(name, place / name, *found));
                queue.insert(queue.end(), out.back().needed.begin(), out.back().needed.end());
                break;
            }
        }
    }
    return out;
}

} // namespace kb::build
