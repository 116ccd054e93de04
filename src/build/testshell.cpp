// SPDX-License-Identifier: Apache-2.0
#include "build/testshell.hpp"

#include "base/text.hpp"
#include "build/inspect.hpp"
#include "build/python_child.hpp"
#include "digest/key_file.hpp"
#include "document/json.hpp"
#include "sys/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <unistd.h>

namespace kb::build {

namespace {

using sys::Path;

/// Stands for the way stubs are made: another one makes them anew.
constexpr std::string_view kStubFormat = "2";

constexpr const char* kFindTorch = R"(import importlib.util, json, sys
s = importlib.util.find_spec("torch")
p = list(s.submodule_search_locations or []) if s else []
print(json.dumps({"python": sys.executable, "torch": p[0] if p else ""}))
)";

constexpr std::string_view kCpuStartFile =
    R"(# Made by kernel-builder testshell --as cpu: torch says that it has no CUDA.
import importlib.util
import os
import sys


class _CpuTorch:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            module.version.cuda = None

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _CpuTorch())

# Another start file of that name may stand further down the path.
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p) != _here]
_own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError:
    if _own is not None:
        sys.modules["sitecustomize"] = _own
)";

constexpr std::string_view kDriver = "libcuda.so.1";

/// Libraries of the C and C++ runtime, which a stub must never stand for.
bool is_of_system(std::string_view library) {
    constexpr std::array<std::string_view, 14> kSystem = {"libc",
                                                          "libm",
                                                          "libdl",
                                                          "librt",
                                                          "libpthread",
                                                          "libutil",
                                                          "libresolv",
                                                          "libgcc_s",
                                                          "libstdc++",
                                                          "libgomp",
                                                          "libgfortran",
                                                          "libquadmath",
                                                          "libatomic",
                                                          "libz"};
    const std::string_view stem = library.substr(0, library.find(".so"));
    return library.starts_with("ld-linux") || std::ranges::find(kSystem, stem) != kSystem.end();
}

bool is_of_python(std::string_view symbol) {
    return symbol.starts_with("Py") || symbol.starts_with("_Py");
}

StubAnswer answer_of(std::string_view symbol) {
    constexpr std::array<std::string_view, 4> kTexts = {
        "GetErrorString", "GetErrorName", "GetStatusString", "GetStatusName"};
    const bool is_text =
        symbol == "ncclGetLastError" || std::ranges::any_of(kTexts, [symbol](std::string_view end) {
            return symbol.ends_with(end);
        });
    return is_text ? StubAnswer::text : StubAnswer::no_device;
}

/// Collects the stubs of plan_stubs().
class StubPlanner {
public:
    explicit StubPlanner(const StubInput& input)
        : defined_{input.defined.begin(), input.defined.end()} {
        for (const TorchLibrary& library : input.libraries) {
            for (const binfmt::Symbol& symbol : library.facts.exports) {
                defined_.insert(symbol.name);
            }
        }
        for (const std::string& name : foreign_libraries(input.libraries)) {
            if (!input.real.contains(name)) {
                stubs_[name] = {.soname = name, .machine = input.machine};
            }
        }
    }

    void add(const TorchLibrary& library) {
        for (const binfmt::VersionNeed& need : library.facts.version_needs) {
            const auto stub = stubs_.find(std::string{need.library});
            if (stub != stubs_.end()) {
                stub->second.versions.emplace_back(need.version);
            }
        }
        std::vector<std::string> missing;
        for (const std::string_view name : library.facts.needed) {
            if (stubs_.contains(std::string{name})) {
                missing.emplace_back(name);
            }
        }
        for (const binfmt::Symbol& symbol : library.facts.imports) {
            if (symbol.binding == binfmt::Binding::weak || is_of_python(symbol.name)) {
                continue;
            }
            if (!symbol.library.empty()) {
                define(std::string{symbol.library}, symbol);
            } else if (!defined_.contains(symbol.name)) {
                for (const std::string& name : missing) {
                    define(name, symbol);
                }
            }
        }
    }

    std::vector<StubLibrary> take() {
        std::vector<StubLibrary> out;
        for (auto& [name, stub] : stubs_) {
            std::ranges::sort(stub.symbols);
            stub.symbols.erase(std::unique(stub.symbols.begin(), stub.symbols.end()),
                               stub.symbols.end());
            out.push_back(std::move(stub));
        }
        return out;
    }

private:
    void define(const std::string& library, const binfmt::Symbol& symbol) {
        const auto stub = stubs_.find(library);
        if (stub != stubs_.end()) {
            stub->second.symbols.push_back({.name = std::string{symbol.name},
                                            .version = std::string{symbol.version},
                                            .answer = answer_of(symbol.name)});
        }
    }

    std::set<std::string_view> defined_;
    std::map<std::string, StubLibrary> stubs_;
};

// ---- what is on this machine ----

bool is_library_name(std::string_view name) {
    return name.ends_with(".so") || name.contains(".so.");
}

Result<std::vector<Path>> torch_library_files(sys::FileSystem& fs, const Path& torch) {
    std::vector<Path> files;
    KB_TRY(const auto libraries, fs.list(torch / "lib"));
    for (const sys::DirEntry& entry : libraries) {
        if (is_library_name(entry.name)) {
            files.push_back(torch / "lib" / entry.name);
        }
    }
    KB_TRY(const auto top, fs.list(torch));
    for (const sys::DirEntry& entry : top) {
        if (entry.name.starts_with("_C") && is_library_name(entry.name)) {
            files.push_back(torch / entry.name);
        }
    }
    if (files.empty()) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("'{}' holds no libraries of torch", torch.string())};
    }
    return files;
}

Result<std::vector<TorchLibrary>> read_libraries(const std::vector<Path>& files) {
    std::vector<TorchLibrary> libraries;
    for (const Path& file : files) {
        KB_TRY(binfmt::SharedObject facts,
               inspect_file(file, {.paths = InspectOptions::Paths::skip}));
        libraries.push_back({.name = file.filename().string(), .facts = std::move(facts)});
    }
    return libraries;
}

void add_configured_directories(sys::FileSystem& fs, std::vector<Path>& directories) {
    std::vector<Path> files{"/etc/ld.so.conf"};
    if (const auto more = fs.list("/etc/ld.so.conf.d")) {
        for (const sys::DirEntry& entry : *more) {
            files.push_back(Path{"/etc/ld.so.conf.d"} / entry.name);
        }
    }
    for (const Path& file : files) {
        const auto text = fs.read_file(file, 1UL << 20U);
        if (!text) {
            continue;
        }
        for (const std::string_view line : split(*text, '\n')) {
            if (trim(line).starts_with('/')) {
                directories.emplace_back(trim(line));
            }
        }
    }
}

/// Where the dynamic loader and torch's own start look for a library.
std::vector<Path> library_directories(sys::FileSystem& fs,
                                      const sys::EnvironmentMap& environment,
                                      const Path& torch) {
    std::vector<Path> directories;
    const std::string path = sys::lookup(environment, "LD_LIBRARY_PATH").value_or("");
    for (const std::string_view entry : split(path, ':')) {
        if (!entry.empty()) {
            directories.emplace_back(entry);
        }
    }
    const Path nvidia = torch.parent_path() / "nvidia"; // the wheels of the CUDA libraries
    if (const auto parts = fs.list(nvidia)) {
        for (const sys::DirEntry& part : *parts) {
            directories.push_back(nvidia / part.name / "lib");
        }
    }
    for (const char* usual : {"/lib",
                              "/usr/lib",
                              "/lib64",
                              "/usr/lib64",
                              "/usr/local/lib",
                              "/lib/x86_64-linux-gnu",
                              "/usr/lib/x86_64-linux-gnu",
                              "/lib/aarch64-linux-gnu",
                              "/usr/lib/aarch64-linux-gnu"}) {
        directories.emplace_back(usual);
    }
    add_configured_directories(fs, directories);
    return directories;
}

/// Name -> where it lies, for those that lie anywhere.
std::map<std::string, Path> find_libraries(sys::FileSystem& fs,
                                           const std::set<std::string>& wanted,
                                           const std::vector<Path>& directories) {
    std::map<std::string, Path> found;
    for (const std::string& name : wanted) {
        const auto directory = std::ranges::find_if(
            directories, [&](const Path& path) { return sys::exists(fs, path / name); });
        if (directory != directories.end()) {
            found.emplace(name, *directory / name);
        }
    }
    return found;
}

/// What the real libraries define.
Result<std::set<std::string>> read_exports(const std::map<std::string, Path>& found,
                                           const std::set<std::string>& real) {
    std::set<std::string> names;
    for (const auto& [name, path] : found) {
        if (!real.contains(name)) {
            continue;
        }
        KB_TRY(const std::vector<TorchLibrary> library, read_libraries({path}));
        for (const binfmt::Symbol& symbol : library.front().facts.exports) {
            names.emplace(symbol.name);
        }
    }
    return names;
}

Result<Path> find_torch(const std::string& python,
                        const sys::EnvironmentMap& environment,
                        sys::ProcessRunner& processes) {
    auto run = processes.run(python_child(python, kFindTorch, environment));
    if (!run) {
        return std::move(run).context(fmt::format("asking '{}' for torch", python)).error();
    }
    if (!run->status.ok()) {
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format("'{}' could not be asked for torch: {}\n{}",
                                            python,
                                            run->status.to_text(),
                                            run->err)};
    }
    KB_TRY(const document::Node answer, document::parse_json(run->out, {.name = python}));
    const std::string torch = answer.text_or("torch");
    if (torch.empty()) {
        const std::string found = answer.text_or("python", python);
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format(
                         "'{}' has no torch; run: {} -m pip install torch", found, found)};
    }
    return Path{torch};
}

// ---- stubs on disk ----

/// Names a set of stubs by what they were made for and from.
Result<std::string> stub_key(sys::FileSystem& fs,
                             const std::vector<Path>& files,
                             const std::set<std::string>& present) {
    digest::KeyFile key;
    key.set("format", kStubFormat);
    for (std::size_t i = 0; i < files.size(); ++i) {
        KB_TRY(const sys::FileInfo info, fs.stat(files[i]));
        key.set(fmt::format("library-{:03}", i),
                fmt::format("{} {} {}", files[i].string(), info.size, info.mtime_ns));
    }
    std::size_t i = 0;
    for (const std::string& name : present) {
        key.set(fmt::format("present-{:03}", i++), name);
    }
    return key.digest().hex().substr(0, 32);
}

/// A folder that appears whole: made beside and renamed. One that is there stays.
Result<void> make_folder(sys::FileSystem& fs,
                         const Path& folder,
                         const std::map<std::string, std::string>& files) {
    if (sys::exists(fs, folder)) {
        return {};
    }
    const Path beside = folder.string() + fmt::format(".new-{}", ::getpid());
    KB_TRY(fs.remove_tree(beside));
    KB_TRY(fs.make_directories(beside));
    for (const auto& [name, content] : files) {
        KB_TRY(fs.write_scratch(beside / name, content, FileMode::regular));
    }
    auto moved = fs.rename(beside, folder);
    if (!moved && sys::exists(fs, folder)) { // another shell was faster
        return fs.remove_tree(beside);
    }
    return moved;
}

StubMachine machine_of(std::span<const TorchLibrary> libraries) {
    return libraries.front().facts.architecture == "aarch64" ? StubMachine::aarch64
                                                             : StubMachine::x86_64;
}

Result<void> make_stubs(const TestShellRequest& request,
                        const sys::EnvironmentMap& environment,
                        sys::FileSystem& fs,
                        TestShell& shell) {
    KB_TRY(const std::vector<Path> files, torch_library_files(fs, shell.torch));
    KB_TRY(const std::vector<TorchLibrary> libraries, read_libraries(files));
    const std::set<std::string> foreign = foreign_libraries(libraries);
    const std::map<std::string, Path> found =
        find_libraries(fs, foreign, library_directories(fs, environment, shell.torch));
    std::set<std::string> names;
    for (const auto& [name, path] : found) {
        names.insert(name);
    }
    StubChoice choice = choose_stubs(foreign, names);
    shell.stubbed = std::move(choice.stubbed);
    if (shell.stubbed.empty()) {
        return {};
    }
    KB_TRY(const std::string key, stub_key(fs, files, choice.real));
    shell.stubs = request.cache / key;
    if (!sys::exists(fs, shell.stubs)) {
        KB_TRY(std::set<std::string> defined, read_exports(found, choice.real));
        std::map<std::string, std::string> content;
        for (const StubLibrary& stub : plan_stubs({.libraries = libraries,
                                       .real = choice.real,
                                       .defined = std::move(defined),
                                       .machine = machine_of(libraries)})) {
            content[stub.soname] = write_stub_library(stub);
        }
        KB_TRY(make_folder(fs, shell.stubs, content));
    }
    const std::string old = sys::lookup(environment, "LD_LIBRARY_PATH").value_or("");
    const std::string own = shell.stubs.string();
    const std::string joined = choice.first ? own + ":" + old : old + ":" + own;
    shell.changes["LD_LIBRARY_PATH"] = old.empty() ? own : joined;
    return {};
}

} // namespace

std::set<std::string> foreign_libraries(std::span<const TorchLibrary> libraries) {
    std::set<std::string> own;
    for (const TorchLibrary& library : libraries) {
        own.insert(library.name);
        own.emplace(library.facts.soname);
    }
    std::set<std::string> foreign;
    for (const TorchLibrary& library : libraries) {
        for (const std::string_view name : library.facts.needed) {
            if (!own.contains(std::string{name})) {
                foreign.emplace(name);
            }
        }
    }
    return foreign;
}

StubChoice choose_stubs(const std::set<std::string>& foreign, const std::set<std::string>& found) {
    const bool has_driver = found.contains(std::string{kDriver});
    const bool complete = std::ranges::all_of(foreign, [&found](const std::string& name) {
        return is_of_system(name) || name == kDriver || found.contains(name);
    });
    StubChoice choice{.first = !has_driver};
    for (const std::string& name : foreign) {
        const bool is_real = is_of_system(name) || complete || (has_driver && found.contains(name));
        if (is_real) {
            choice.real.insert(name);
        } else {
            choice.stubbed.push_back(name);
        }
    }
    return choice;
}

std::vector<StubLibrary> plan_stubs(const StubInput& input) {
    StubPlanner planner{input};
    for (const TorchLibrary& library : input.libraries) {
        planner.add(library);
    }
    return planner.take();
}

std::string_view cpu_start_file() {
    return kCpuStartFile;
}

Result<TestShell> prepare_test_shell(const TestShellRequest& request,
                                     const sys::EnvironmentMap& environment,
                                     sys::FileSystem& fs,
                                     sys::ProcessRunner& processes) {
    TestShell shell{.torch = request.torch};
    if (shell.torch.empty()) {
        KB_TRY(shell.torch, find_torch(request.python, environment, processes));
    }
    KB_TRY(make_stubs(request, environment, fs, shell));
    if (request.as == TestAs::cpu) {
        const std::string start{cpu_start_file()};
        const Path folder = request.cache / ("as-cpu-" + digest::sha256(start).hex().substr(0, 16));
        KB_TRY(make_folder(fs, folder, {{"sitecustomize.py", start}}));
        put_on_python_path(shell, environment, folder);
    }
    return shell;
}

void put_on_python_path(TestShell& shell,
                        const sys::EnvironmentMap& environment,
                        const Path& folder) {
    const auto [place, added] = shell.changes.try_emplace("PYTHONPATH", folder.string());
    if (!added) {
        place->second = folder.string() + ":" + place->second;
    } else if (const auto old = sys::lookup(environment, "PYTHONPATH")) {
        place->second += ":" + *old;
    }
}

Error replace_process(const std::vector<std::string>& argv,
                      const sys::EnvironmentMap& environment) {
    std::vector<std::string> variables;
    for (const auto& [name, value] : environment) {
        variables.push_back(fmt::format("{}={}", name, value));
    }
    std::vector<std::string> words = argv;
    const auto pointers = [](std::vector<std::string>& texts) {
        std::vector<char*> out;
        for (std::string& text : texts) {
            out.push_back(text.data());
        }
        out.push_back(nullptr);
        return out;
    };
    const std::vector<char*> arguments = pointers(words);
    const std::vector<char*> settings = pointers(variables);
    ::signal(SIGPIPE, SIG_DFL); // an ignored signal would stay ignored in the new program
    ::execvpe(arguments.front(), arguments.data(), settings.data());
    return error_from_errno(errno, fmt::format("starting '{}'", argv.front()));
}

} // namespace kb::build
