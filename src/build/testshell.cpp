// SPDX-License-Identifier: Apache-2.0
#include "build/testshell.hpp"

#include "base/text.hpp"
#include "digest/key_file.hpp"
#include "document/json.hpp"
#include "sys/environment.hpp"
#include "sys/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace kb::build {

namespace {

using sys::Path;

/// Stands for the way stubs are made: another one makes them anew.
constexpr std::string_view kStubFormat = "1";

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

class FileSource final : public binfmt::ByteSource {
public:
    static Result<FileSource> open(const Path& path) {
        sys::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};

        struct ::stat info {};

        if (!fd || ::fstat(fd.get(), &info) != 0) {
            return error_from_errno(errno, fmt::format("opening '{}'", path.string()));
        }
        return FileSource{std::move(fd), path, static_cast<std::uint64_t>(info.st_size)};
    }

    [[nodiscard]] std::uint64_t size() const override { return size_; }

    [[nodiscard]] Result<void> read(std::uint64_t offset,
                                    std::span<std::byte> into) const override {
        std::size_t done = 0;
        while (done < into.size()) {
            const auto n = ::pread(fd_.get(),
                                   into.data() + done,
                                   into.size() - done,
                                   static_cast<::off_t>(offset + done));
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n < 0) {
                return error_from_errno(errno, fmt::format("reading '{}'", path_.string()));
            }
            if (n == 0) {
                return Error{.code = ErrorCode::corrupt,
                             .message = fmt::format("'{}' ends too early", path_.string())};
            }
            done += static_cast<std::size_t>(n);
        }
        return {};
    }

private:
    FileSource(sys::UniqueFd fd, Path path, std::uint64_t size)
        : fd_{std::move(fd)}, path_{std::move(path)}, size_{size} {}

    sys::UniqueFd fd_;
    Path path_;
    std::uint64_t size_;
};

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
    StubPlanner(std::span<const TorchLibrary> libraries,
                const std::set<std::string>& present,
                StubMachine machine) {
        for (const TorchLibrary& library : libraries) {
            for (const binfmt::Symbol& symbol : library.facts.exports) {
                defined_.insert(symbol.name);
            }
        }
        for (const std::string& name : foreign_libraries(libraries)) {
            if (!present.contains(name)) {
                stubs_[name] = {.soname = name, .machine = machine};
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
            const auto rest = std::ranges::unique(stub.symbols);
            stub.symbols.erase(rest.begin(), rest.end());
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
        KB_TRY(const FileSource source, FileSource::open(file));
        KB_TRY(
            binfmt::SharedObject facts,
            binfmt::read_shared_object(source).context(fmt::format("reading '{}'", file.string())));
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

std::set<std::string> present_libraries(sys::FileSystem& fs,
                                        const std::set<std::string>& wanted,
                                        const std::vector<Path>& directories) {
    std::set<std::string> present;
    for (const std::string& name : wanted) {
        if (std::ranges::any_of(directories, [&](const Path& directory) {
                return sys::exists(fs, directory / name);
            })) {
            present.insert(name);
        }
    }
    return present;
}

Result<Path> find_torch(const std::string& python,
                        const sys::EnvironmentMap& environment,
                        sys::ProcessRunner& processes) {
    sys::ProcessSpec spec{.argv = {python, "-c", kFindTorch}, .environment = environment};
    auto run = processes.run(spec);
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

std::string
appended(const sys::EnvironmentMap& environment, std::string_view name, const Path& directory) {
    const auto old = sys::lookup(environment, name);
    return old ? *old + ":" + directory.string() : directory.string();
}

Result<void> make_stubs(const TestShellRequest& request,
                        const sys::EnvironmentMap& environment,
                        sys::FileSystem& fs,
                        TestShell& shell) {
    KB_TRY(const std::vector<Path> files, torch_library_files(fs, shell.torch));
    KB_TRY(const std::vector<TorchLibrary> libraries, read_libraries(files));
    const std::set<std::string> foreign = foreign_libraries(libraries);
    const std::set<std::string> present =
        present_libraries(fs, foreign, library_directories(fs, environment, shell.torch));
    for (const std::string& name : foreign) {
        if (!present.contains(name)) {
            shell.stubbed.push_back(name);
        }
    }
    if (shell.stubbed.empty()) {
        return {};
    }
    KB_TRY(const std::string key, stub_key(fs, files, present));
    shell.stubs = request.cache / key;
    if (!sys::exists(fs, shell.stubs)) {
        std::map<std::string, std::string> content;
        for (const StubLibrary& stub : plan_stubs(libraries, present, machine_of(libraries))) {
            content[stub.soname] = write_stub_library(stub);
        }
        KB_TRY(make_folder(fs, shell.stubs, content));
    }
    shell.changes["LD_LIBRARY_PATH"] = appended(environment, "LD_LIBRARY_PATH", shell.stubs);
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

std::vector<StubLibrary> plan_stubs(std::span<const TorchLibrary> libraries,
                                    const std::set<std::string>& present,
                                    StubMachine machine) {
    StubPlanner planner{libraries, present, machine};
    for (const TorchLibrary& library : libraries) {
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
        const auto old = sys::lookup(environment, "PYTHONPATH");
        shell.changes["PYTHONPATH"] = old ? folder.string() + ":" + *old : folder.string();
    }
    return shell;
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
    ::execvpe(arguments.front(), arguments.data(), settings.data());
    return error_from_errno(errno, fmt::format("starting '{}'", argv.front()));
}

} // namespace kb::build
