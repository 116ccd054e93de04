// SPDX-License-Identifier: Apache-2.0
#include "toolchain/providers/apt.hpp"

#include "base/text.hpp"
#include "store/blob_store.hpp"
#include "sys/environment.hpp"

#include <fmt/format.h>

#include <utility>

namespace kb::toolchain {
namespace {

/// Keys of every Debian release; apt verifies the lists with them, and we the packages.
constexpr std::string_view kKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

Error no_apt(Error error) {
    if (error.code == ErrorCode::not_found) {
        error.message = "no program 'apt-get' in PATH, which fetches debs: give a directory of "
                        "files with --from ('fetch --export' on another machine makes one)";
    }
    return error;
}

/// Address of the Debian archive that the user's own apt reads, whatever mirror that is.
///  "Debian|http://host/debian"
std::optional<std::string> debian_site(std::string_view targets) {
    for (const std::string_view line : split(targets, '\n')) {
        const auto cells = split(line, '|');
        if (cells.size() == 2 && cells[0] == "Debian" && !cells[1].empty()) {
            return std::string{cells[1]};
        }
    }
    return std::nullopt;
}

} // namespace

Error apt_failure(const sys::ProcessResult& result) {
    std::string first;
    for (const std::string_view line : split(result.err, '\n')) {
        if (line.starts_with("E: ")) {
            first = trim(line.substr(3));
            break;
        }
    }
    // E: Version '1' for 'libc6' was not found / E: Unable to locate package libc6 / E: Can't find
    // a source to download version ...
    const bool gone = first.find("was not found") != std::string::npos ||
                      first.find("Unable to locate") != std::string::npos ||
                      first.find("Can't find a source") != std::string::npos;
    if (gone) {
        return {.code = ErrorCode::not_found,
                .message = fmt::format(
                    "a pinned package is not served by the configured archive ({}): run 'apt-get "
                    "update' and try again, pin what is served now with 'kernel-builder lock "
                    "--update', or give a directory of files with --from",
                    escape_control(first))};
    }
    return {.code = ErrorCode::transient,
            .message = fmt::format("apt-get could not fetch packages ({}): {}",
                                   result.status.to_text(),
                                   escape_control(first.empty() ? trim(result.err) : first))};
}

Apt::Apt(Apt&& other) noexcept
    : machine_{other.machine_},
      options_{std::move(other.options_)},
      state_{std::exchange(other.state_, {})} {}

Apt::~Apt() {
    if (!state_.empty()) {
        static_cast<void>(machine_->fs.remove_tree(state_).has_value());
    }
}

Result<Apt> Apt::open(const DebSet* set, const Machine& machine) {
    Apt apt{machine};
    if (set != nullptr && !set->suite.empty()) {
        KB_TRY(apt.read_lists(*set));
    }
    return apt;
}

Result<void> Apt::read_lists(const DebSet& set) {
    KB_TRY(const sys::ProcessResult targets,
           run("apt-get",
               {"indextargets", "--format", "$(LABEL)|$(SITE)", "Created-By: Packages"},
               "/"));
    const auto site = debian_site(targets.out);
    if (!site) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("'{}' comes from Debian's {}, and apt is configured "
                                            "for no Debian archive: give a directory of files with "
                                            "--from ('fetch --export' on another machine makes "
                                            "one)",
                                            set.id(),
                                            set.suite)};
    }
    const std::string base = sys::lookup(machine_->environment, "TMPDIR").value_or("/tmp");
    state_ = sys::Path{base} / ("kernel-builder-apt-" + store::unique_name());
    KB_TRY(machine_->fs.make_directories(state_ / "lists/partial"));
    KB_TRY(machine_->fs.write_scratch(
        state_ / "sources.list",
        fmt::format("deb [signed-by={}] {} {} {}\n", kKeyring, *site, set.suite, set.component),
        FileMode::regular));
    options_ = {"-o",
                "Dir::Etc::sourcelist=" + (state_ / "sources.list").string(),
                "-o",
                "Dir::Etc::sourceparts=/dev/null",
                "-o",
                "Dir::State::lists=" + (state_ / "lists").string(),
                "-o",
                "Dir::Cache::pkgcache=",
                "-o",
                "Dir::Cache::srcpkgcache="};
    KB_TRY(const sys::ProcessResult updated, run("apt-get", {"-q", "update"}, "/"));
    return updated.status.ok() ? Result<void>{} : apt_failure(updated);
}

Result<sys::ProcessResult> Apt::run(std::string_view program,
                                    const std::vector<std::string>& words,
                                    const sys::Path& directory) const {
    // Without root as its user it complains about folders that are ours alone.
    std::vector<std::string> argv{std::string{program}, "-o", "APT::Sandbox::User=root"};
    argv.insert(argv.end(), options_.begin(), options_.end());
    argv.insert(argv.end(), words.begin(), words.end());
    auto result = run_tool(*machine_, std::move(argv), directory);
    return result ? std::move(result) : Result<sys::ProcessResult>{no_apt(result.error())};
}

} // namespace kb::toolchain
