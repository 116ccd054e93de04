// SPDX-License-Identifier: Apache-2.0
#include "toolchain/host_view.hpp"

#include "backend/mounts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace kb::toolchain {

namespace {

constexpr std::array<std::string_view, 3> kLoaders{
    "lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1", "lib64/ld-linux-aarch64.so.1"};
/// What a compiler driver looks for beside its own parts.
constexpr std::array<std::string_view, 7> kBinutils{
    "as", "ld", "ld.bfd", "ld.gold", "nm", "objcopy", "strip"};
constexpr std::array<std::string_view, 4> kDrivers{"gcc", "g++", "cpp", "c++"};
constexpr int kMaxLinks = 8;

/// 'word' of a POSIX shell: paths are the user's and may hold anything.
std::string shell_word(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' ? std::string{"'\\''"} : std::string{c};
    }
    return out + "'";
}

Result<bool> is_program(sys::FileSystem& fs, const sys::Path& path) {
    KB_TRY(const sys::FileInfo info, fs.stat(path));
    if (info.type != sys::FileType::regular || (info.mode & 0111U) == 0 || info.size < 4) {
        return false;
    }
    KB_TRY(const auto file, fs.open_read(path));
    std::array<char, 4> magic{};
    KB_TRY(const std::size_t read, file->read_at(0, magic.data(), magic.size()));
    return read == magic.size() && std::string_view{magic.data(), magic.size()} == "\x7f"
                                                                                   "ELF";
}

/// "x86_64-linux-gnu" of "x86_64-linux-gnu-g++-12", "" for what is no compiler driver.
std::string driver_target(std::string_view name) {
    for (const std::string_view driver : kDrivers) {
        const std::string infix = fmt::format("-{}", driver);
        const std::size_t at = name.rfind(infix);
        if (at == std::string_view::npos || at == 0) {
            continue;
        }
        const std::string_view rest = name.substr(at + infix.size());
        // "-12" and nothing else: "x86_64-linux-gnu-gcc-ar-12" is none.
        if (rest.find_first_not_of("-0123456789.") == std::string_view::npos) {
            return std::string{name.substr(0, at)};
        }
    }
    return {};
}

class ViewWriter {
public:
    ViewWriter(sys::FileSystem& fs,
               const sys::Path& view,
               std::span<const Root> roots,
               std::span<const PlaceAt> places)
        : fs_{fs}, view_{view}, roots_{roots}, places_{places} {}

    Result<void> write() {
        KB_TRY(fs_.make_directories(view_));
        KB_TRY(const std::vector<sys::DirEntry> old, fs_.list(view_));
        for (const sys::DirEntry& entry : old) {
            if (entry.name != "src") {
                KB_TRY(fs_.remove_tree(view_ / entry.name));
            }
        }
        for (const Root& root : roots_) {
            KB_TRY(link(root.mount, root.host));
        }
        for (const auto& [place, directory] : places_) {
            KB_TRY(link(place, directory));
        }
        const auto usr = std::ranges::find(roots_, backend::kHostMount, &Root::mount);
        return usr == roots_.end() ? Result<void>{} : write_programs(usr->host);
    }

private:
    Result<void> link(std::string_view place, const sys::Path& target) {
        const sys::Path at = view_ / place.substr(1);
        KB_TRY(fs_.make_directories(at.parent_path()));
        return fs_.symlink(target.string(), at);
    }

    Result<void> write_programs(const sys::Path& usr) {
        for (const std::string_view name : {"lib", "lib64", "libexec"}) {
            KB_TRY(fs_.symlink(fmt::format("usr/{}", name), view_ / name));
        }
        KB_TRY(find_loader(usr));
        make_flags(usr);
        KB_TRY(write_parts(usr));
        KB_TRY(const std::vector<sys::DirEntry> entries, fs_.list(usr / "bin"));
        KB_TRY(fs_.make_directories(view_ / "bin"));
        for (const sys::DirEntry& entry : entries) {
            KB_TRY(write_program(usr, entry.name));
        }
        return {};
    }

    Result<void> find_loader(const sys::Path& usr) {
        const auto loader = std::ranges::find_if(
            kLoaders, [&](std::string_view name) { return sys::exists(fs_, usr / name); });
        if (loader == kLoaders.end()) {
            return Error{.code = ErrorCode::unsupported,
                         .message = fmt::format("'{}' holds no program loader, so its compiler can "
                                                "only run in a sandbox with mounts; use --sandbox "
                                                "namespaces or chroot",
                                                usr.string())};
        }
        std::string libraries = (usr / "lib").string();
        KB_TRY(const std::vector<sys::DirEntry> entries, fs_.list(usr / "lib"));
        for (const sys::DirEntry& entry : entries) {
            if (entry.name.ends_with("-linux-gnu")) {
                libraries += ":" + (usr / "lib" / entry.name).string();
            }
        }
        loader_ = fmt::format("{} --inhibit-cache --library-path {}",
                              shell_word((usr / *loader).string()),
                              shell_word(libraries));
        return {};
    }

    /// The compiler resolves some of its folders to the store's paths, so both names of each place
    /// are mapped. The last match wins.
    void make_flags(const sys::Path& usr) {
        const auto map = [&](const std::string& from, std::string_view to) {
            flags_ += " " + shell_word(fmt::format("-ffile-prefix-map={}={}", from, to));
        };
        flags_ =
            fmt::format("--sysroot={} -fno-canonical-system-headers", shell_word(view_.string()));
        map(view_.string() + "/", "/");
        map(view_.string() + "/bin/..", backend::kHostMount);
        map(view_.string() + "/lib", "/usr/lib");
        map(usr.string(), backend::kHostMount);
        for (const Root& root : roots_) {
            map(root.host.string(), root.mount);
        }
        for (const auto& [place, directory] : places_) {
            map(directory.string(), place);
        }
    }

    /// lib/gcc/<target>/<version>/{cc1plus, collect2 ...} as <view>/gcc/<target>/..., where the
    /// driver's -B finds them before the programs themselves.
    Result<void> write_parts(const sys::Path& usr) {
        for (const std::string_view base : {"lib/gcc", "lib/gcc-cross", "libexec/gcc"}) {
            if (!sys::exists(fs_, usr / base)) {
                continue;
            }
            KB_TRY(const std::vector<sys::DirEntry> targets, fs_.list(usr / base));
            for (const sys::DirEntry& target : targets) {
                KB_TRY(write_parts_of(usr, usr / base / target.name, target.name));
            }
        }
        return {};
    }

    Result<void>
    write_parts_of(const sys::Path& usr, const sys::Path& from, const std::string& target) {
        const sys::Path into = view_ / "gcc" / target;
        KB_TRY(fs_.make_directories(into));
        KB_TRY(const std::vector<sys::DirEntry> versions, fs_.list(from));
        for (const sys::DirEntry& version : versions) {
            if (version.type != sys::FileType::directory) {
                continue;
            }
            KB_TRY(const std::vector<sys::DirEntry> files, fs_.list(from / version.name));
            for (const sys::DirEntry& file : files) {
                // Libraries carry the execute bit on some systems; they are no programs.
                if (file.name.find(".so") == std::string::npos) {
                    KB_TRY(write_script(into / file.name, from / version.name / file.name, ""));
                }
            }
        }
        for (const std::string_view tool : kBinutils) {
            const sys::Path program = usr / "bin" / fmt::format("{}-{}", target, tool);
            if (sys::exists(fs_, program)) {
                KB_TRY(write_script(into / tool, program, ""));
            }
        }
        return {};
    }

    Result<void> write_program(const sys::Path& usr, const std::string& name) {
        if (!fs_.stat(usr / "bin" / name)) {
            return {}; // a link into what a slice left out
        }
        std::string last = name;
        for (int links = 0; links < kMaxLinks; ++links) {
            KB_TRY(const sys::FileInfo info, fs_.stat(usr / "bin" / last, sys::FollowLinks::no));
            if (info.type != sys::FileType::symlink) {
                break;
            }
            KB_TRY(const std::string next, fs_.read_link(usr / "bin" / last));
            if (next.find('/') != std::string::npos) {
                break;
            }
            last = next;
        }
        const std::string target = driver_target(last);
        std::string flags;
        if (!target.empty()) {
            flags = fmt::format(
                " -B{} {}", shell_word((view_ / "gcc" / target).string() + "/"), flags_);
        }
        return write_script(view_ / "bin" / name, usr / "bin" / name, flags);
    }

    /// Nothing for a file that is no program.
    Result<void>
    write_script(const sys::Path& script, const sys::Path& program, std::string_view flags) {
        KB_TRY(const bool runs, is_program(fs_, program));
        if (!runs) {
            return {};
        }
        return fs_.write_scratch(script,
                                 fmt::format("#!/bin/sh\nexec {} --argv0 {} {}{} \"$@\"\n",
                                             loader_,
                                             shell_word(script.string()),
                                             shell_word(program.string()),
                                             flags),
                                 FileMode::executable);
    }

    sys::FileSystem& fs_;
    const sys::Path& view_;
    std::span<const Root> roots_;
    std::span<const PlaceAt> places_;
    std::string loader_{};
    std::string flags_{};
};

} // namespace

Result<void> write_host_view(sys::FileSystem& fs,
                             const sys::Path& view,
                             std::span<const Root> roots,
                             std::span<const PlaceAt> places) {
    return ViewWriter{fs, view, roots, places}.write();
}

} // namespace kb::toolchain
