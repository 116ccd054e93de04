// SPDX-License-Identifier: Apache-2.0
#include "toolchain/toolchain.hpp"

#include "backend/mounts.hpp"
#include "plan/support_matrix.hpp"
#include "store/archive_builder.hpp"
#include "store/blob_store.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "sys/clock.hpp"
#include "toolchain/provider.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

using namespace kb;
using namespace kb::toolchain;
using backend::Requirement;

namespace {

Requirement requirement(std::string_view id) {
    return Requirement::parse(id).value();
}

/// pip and apt-get as far as the providers call them: files are served from a directory.
class FakePrograms final : public sys::ProcessRunner {
public:
    explicit FakePrograms(sys::Path served) : served_{std::move(served)} {}

    Result<sys::ProcessResult> run(const sys::ProcessSpec& spec) override {
        calls.push_back(spec.argv);
        const std::string name = sys::Path{spec.argv[0]}.filename().string();
        if (name == "pip3") {
            const auto place = std::ranges::find(spec.argv, "-d");
            const std::string error = std::exchange(pip_error, pip_error_lasts ? pip_error : "");
            return serve(*std::next(place), error);
        }
        if (name == "apt-get") {
            return serve(spec.working_directory, apt_error);
        }
        if (name == "apt-cache") {
            const bool listing = std::ranges::find(spec.argv, "madison") != spec.argv.end();
            return sys::ProcessResult{.out = listing ? madison : show};
        }
        return Error{.code = ErrorCode::not_found, .message = "no program '" + name + "' in PATH"};
    }

    std::string pip_error{};
    bool pip_error_lasts = true;
    std::string apt_error{};
    std::string madison{};
    std::string show{};
    std::vector<std::vector<std::string>> calls{};

private:
    Result<sys::ProcessResult> serve(const sys::Path& to, const std::string& error) {
        if (!error.empty()) {
            return sys::ProcessResult{.status = {.code = 1}, .err = error};
        }
        for (const auto& file : std::filesystem::directory_iterator{served_}) {
            std::filesystem::copy(file.path(),
                                  to / file.path().filename(),
                                  std::filesystem::copy_options::overwrite_existing);
        }
        return sys::ProcessResult{};
    }

    sys::Path served_;
};

/// Sleeps without waiting and counts.
class PassingClock final : public sys::Clock {
public:
    std::int64_t unix_seconds() override { return 0; }

    std::chrono::steady_clock::time_point now() override { return {}; }

    bool sleep(std::chrono::milliseconds duration) override {
        slept += duration;
        return true;
    }

    std::chrono::milliseconds slept{};
};

constexpr std::string_view kWheel = "torch-9.1.0-cp312-cp312-manylinux_2_28_x86_64.whl";

struct Ground {
    kb::test::TempDir dir{};
    FakePrograms programs{dir / "served"};
    sys::EnvironmentMap environment{{"PATH", (dir / "bin").string()},
                                    {"TMPDIR", (dir / "tmp").string()}};
    PassingClock clock{};
    Machine machine{sys::real_file_system(), programs, environment, clock};
    FetchOptions options{};

    Ground() {
        std::filesystem::create_directories(dir / "served");
        std::filesystem::create_directories(dir / "tmp");
        kb::test::write_text(dir / "bin/pip3", "");
        std::filesystem::permissions(dir / "bin/pip3", std::filesystem::perms::owner_all);
        store::test::write_archive(dir.path() / "served" / kWheel,
                                   store::ArchiveKind::zip,
                                   {{.path = "torch/include/torch/x.h", .content = "int x;\n"},
                                    {.path = "torch/version.py", .content = "9"},
                                    {.path = "torch/lib/libtorch.so", .content = "big"}});
    }

    [[nodiscard]] store::Store store() {
        return store::Store::open(sys::real_file_system(), sys::real_clock(), dir / "store")
            .value();
    }

    [[nodiscard]] plan::LockEntry wheel_entry() const {
        const auto blob = store::hash_file(sys::real_file_system(), dir.path() / "served" / kWheel);
        return {.id = "wheel/torch@9.1.0#include",
                .file = std::string{kWheel},
                .platform = "x86_64-linux",
                .size = blob->size,
                .sha256 = blob->digest,
                .slice = plan::LockSlice{.name = "include"}};
    }

    [[nodiscard]] Result<FetchReport> fetch(const plan::LockEntry& entry) {
        store::Store opened = store();
        return toolchain::fetch(std::span{&entry, 1}, opened, machine, options);
    }

    /// Nothing of a failed fetch stays.
    [[nodiscard]] bool is_empty() {
        sys::FileSystem& fs = sys::real_file_system();
        return fs.list(dir / "store/pkg")->empty() && fs.list(dir / "store/tree")->empty() &&
               fs.list(dir / "store/tmp")->empty();
    }
};

} // namespace

TEST_CASE("a pinned wheel is fetched once and only its slice is kept", "[toolchain][fetch]") {
    Ground ground;
    const auto first = ground.fetch(ground.wheel_entry());
    INFO((first ? std::string{} : first.error().to_text()));
    REQUIRE(first);
    CHECK(first->fetched == std::vector<std::string>{"wheel/torch@9.1.0#include"});
    CHECK(ground.programs.calls.size() == 1);
    const auto& words = ground.programs.calls[0];
    for (const std::string_view word : {"download",
                                        "--no-deps",
                                        "--only-binary=:all:",
                                        "manylinux_2_28_x86_64",
                                        "torch==9.1.0"}) {
        CHECK(std::ranges::find(words, word) != words.end());
    }
    const auto second = ground.fetch(ground.wheel_entry());
    REQUIRE(second);
    CHECK(second->fetched.empty());
    CHECK(second->present.size() == 1);
    CHECK(ground.programs.calls.size() == 1);
    sys::FileSystem& fs = sys::real_file_system();
    std::vector<std::string> kept;
    const std::vector<sys::WalkEntry> entries = sys::walk(fs, ground.dir / "store/tree").value();
    for (const sys::WalkEntry& entry : entries) {
        if (entry.info.type == sys::FileType::regular && entry.path.extension() != ".manifest") {
            kept.emplace_back(entry.path.text().substr(65));
        }
    }
    CHECK(kept == std::vector<std::string>{"include/torch/x.h", "version.py"});
}

TEST_CASE("a mirror that serves another file is told with both digests", "[toolchain][fetch]") {
    Ground ground;
    plan::LockEntry entry = ground.wheel_entry();
    const digest::Digest served = entry.sha256;
    entry.sha256 = digest::sha256("what was pinned");
    const auto report = ground.fetch(entry);
    REQUIRE(!report);
    CHECK(report.error().code == ErrorCode::corrupt);
    const std::string text = report.error().to_text();
    INFO(text);
    CHECK(text.find(std::string{kWheel}) != std::string::npos);
    CHECK(text.find(entry.sha256.hex() + " is pinned") != std::string::npos);
    CHECK(text.find(served.hex() + " was found") != std::string::npos);
    CHECK(text.find("lock --update") != std::string::npos);
    CHECK(ground.is_empty());
}

TEST_CASE("an index that answers without any version is asked again", "[toolchain][fetch]") {
    Ground ground;
    ground.programs.pip_error = "ERROR: Could not find a version that satisfies the "
                                "requirement torch==9.1.0 (from versions: none)\n";
    ground.programs.pip_error_lasts = false;
    CHECK(ground.fetch(ground.wheel_entry()));
    CHECK(ground.programs.calls.size() == 2);
    CHECK(ground.clock.slept == std::chrono::seconds{2});
}

TEST_CASE("what cannot be fetched says why and what to do", "[toolchain][fetch]") {
    Ground ground;
    SECTION("no such version") {
        ground.programs.pip_error = "ERROR: Could not find a version that satisfies the "
                                    "requirement torch==9.1.0 (from versions: 1.0)\n"
                                    "ERROR: No matching distribution found for torch==9.1.0\n";
        const auto report = ground.fetch(ground.wheel_entry());
        REQUIRE(!report);
        CHECK(report.error().code == ErrorCode::not_found);
        CHECK(report.error().to_text().find("Could not find a version") != std::string::npos);
        CHECK(report.error().to_text().find("--from") != std::string::npos);
    }
    SECTION("an index that is not trusted") {
        ground.programs.pip_error =
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'SSLError(certificate "
            "verify failed)': /simple/torch/\n"
            "ERROR: Could not find a version that satisfies the requirement torch==9.1.0 (from "
            "versions: none)\n";
        const auto report = ground.fetch(ground.wheel_entry());
        REQUIRE(!report);
        CHECK(report.error().code == ErrorCode::transient);
        CHECK(report.error().to_text().find("SSLError(certificate verify failed)") !=
              std::string::npos);
        CHECK(report.error().to_text().find("versions") == std::string::npos);
    }
    SECTION("no network") {
        ground.programs.pip_error = "ERROR: connection refused\n";
        CHECK(ground.fetch(ground.wheel_entry()).error().code == ErrorCode::transient);
        CHECK(ground.programs.calls.size() == 3);
        CHECK(ground.clock.slept == std::chrono::seconds{12});
    }
    SECTION("offline") {
        ground.options.network = Network::offline;
        const auto report = ground.fetch(ground.wheel_entry());
        REQUIRE(!report);
        CHECK(report.error().code == ErrorCode::not_found);
        CHECK(report.error().to_text().starts_with(
            "the store has no 'wheel/torch@9.1.0#include' and the network is switched off"));
        CHECK(ground.programs.calls.empty());
    }
    SECTION("no pip") {
        std::filesystem::remove(ground.dir / "bin/pip3");
        const auto report = ground.fetch(ground.wheel_entry());
        REQUIRE(!report);
        CHECK(report.error().to_text().find("install pip") != std::string::npos);
    }
    SECTION("a deb that is gone") {
        ground.programs.apt_error = "E: Version '1-1' for 'libc6' was not found\n";
        const auto report = ground.fetch({.id = "deb/libc6@1-1#gcc-12",
                                          .file = "libc6_1-1_amd64.deb",
                                          .platform = "x86_64-linux",
                                          .slice = plan::LockSlice{.name = "gcc-12"}});
        REQUIRE(!report);
        CHECK(report.error().code == ErrorCode::not_found);
        CHECK(report.error().to_text() ==
              "a pinned package is not served by the configured archive (Version '1-1' for "
              "'libc6' was not found): run 'apt-get update' and try again, pin what is served now "
              "with 'kernel-builder lock --update', or give a directory of files with --from");
        const std::vector<std::string>& words = ground.programs.calls.back();
        REQUIRE(words.size() > 3);
        CHECK(std::vector(words.end() - 3, words.end()) ==
              std::vector<std::string>{"download", "--", "libc6:amd64=1-1"});
    }
    SECTION("a deb whose name is an option") {
        const auto report = ground.fetch({.id = "deb/-oAPT::Update::Pre-Invoke::=id@1-1#gcc-12",
                                          .file = "libc6_1-1_amd64.deb",
                                          .platform = "x86_64-linux",
                                          .slice = plan::LockSlice{.name = "gcc-12"}});
        REQUIRE(!report);
        CHECK(report.error().code == ErrorCode::corrupt);
        CHECK(ground.programs.calls.empty());
    }
    SECTION("stubs of another program") {
        const auto report = ground.fetch({.id = "stub/manylinux_2_28@1",
                                          .file = "manylinux_2_28_x86_64.tsv",
                                          .platform = "x86_64-linux"});
        REQUIRE(!report);
        CHECK(report.error().code == ErrorCode::unsupported);
    }
    SECTION("an installed toolkit that nobody named") {
        const auto report = ground.fetch({.id = "host/cuda@12.6", .file = "x"});
        REQUIRE(!report);
        CHECK(report.error().to_text() ==
              "'host/cuda@12.6' is a toolkit installed on some machine: name it with --cuda-root");
    }
    CHECK(ground.is_empty());
}

TEST_CASE("a bundle goes out by export and comes in without a network", "[toolchain][fetch]") {
    Ground ground;
    ground.options.export_to = ground.dir / "bundle";
    REQUIRE(ground.fetch(ground.wheel_entry()));
    CHECK(kb::test::read_text(ground.dir.path() / "bundle" / kWheel) ==
          kb::test::read_text(ground.dir.path() / "served" / kWheel));
    Ground other;
    other.options.network = Network::offline;
    other.options.from = ground.dir / "bundle";
    const auto report = other.fetch(ground.wheel_entry());
    INFO((report ? std::string{} : report.error().to_text()));
    REQUIRE(report);
    CHECK(report->fetched.size() == 1);
    CHECK(other.programs.calls.empty());
    // A damaged bundle is named as the source.
    Ground third;
    third.options.from = ground.dir / "bundle";
    kb::test::write_text(ground.dir.path() / "bundle" / kWheel, "cut");
    const auto damaged = third.fetch(ground.wheel_entry());
    REQUIRE(!damaged);
    CHECK(damaged.error().code == ErrorCode::corrupt);
    CHECK(damaged.error().to_text().find((ground.dir / "bundle").string()) != std::string::npos);
}

TEST_CASE("a wheel is pinned by what pip serves and then kept", "[toolchain][lock]") {
    Ground ground;
    const std::vector wanted{requirement("wheel/torch@9.1.0#include")};
    const auto lock = resolve(wanted, {}, {}, Update::keep, ground.machine, ground.options);
    INFO((lock ? std::string{} : lock.error().to_text()));
    REQUIRE(lock);
    CHECK(lock->entries == std::vector{ground.wheel_entry()});
    CHECK(sys::real_file_system().list(ground.dir / "tmp")->empty());
    const auto again = resolve(wanted, {}, *lock, Update::newest, ground.machine, ground.options);
    REQUIRE(again);
    CHECK(*again == *lock);
    CHECK(ground.programs.calls.size() == 1);
}

TEST_CASE("debs are pinned from suites that last, with the digests of apt", "[toolchain][lock]") {
    Ground ground;
    const std::string old_hex(64, 'a');
    const std::string new_hex(64, 'b');
    ground.programs.madison =
        " libpython3.11-dev | 3.11.2-6+deb12u9 | http://h/debian-security bookworm-security/main "
        "amd64 Packages\n"
        " libpython3.11-dev | 3.11.2-6+deb12u8 | http://h/debian bookworm/main amd64 Packages\n"
        " python3.11 | 3.11.2-6+deb12u8 | http://h/debian bookworm/main Sources\n";
    ground.programs.show =
        "Package: libpython3.11-dev\nVersion: 3.11.2-6+deb12u9\nArchitecture: amd64\nSize: 11\n"
        "SHA256: " +
        new_hex +
        "\n\nPackage: libpython3.11-dev\nVersion: 3.11.2-6+deb12u8\nArchitecture: amd64\nSize: 10\n"
        "SHA256: " +
        old_hex + "\n\n";
    const std::vector wanted{requirement("deb/python-headers@3.11")};
    const auto lock = resolve(wanted, {}, {}, Update::keep, ground.machine, ground.options);
    INFO((lock ? std::string{} : lock.error().to_text()));
    REQUIRE(lock);
    REQUIRE(lock->entries.size() == 1);
    const plan::LockEntry& entry = lock->entries[0];
    CHECK(entry.id == "deb/libpython3.11-dev@3.11.2-6+deb12u8#python-headers-3.11");
    CHECK(entry.file == "libpython3.11-dev_3.11.2-6+deb12u8_amd64.deb");
    CHECK(entry.size == 10);
    CHECK(entry.sha256.hex() == old_hex);
    CHECK(plan::satisfies(entry, wanted[0]));
    // An archive without the package says so.
    ground.programs.madison = "";
    const auto missing = resolve(wanted, {}, {}, Update::keep, ground.machine, ground.options);
    REQUIRE(!missing);
    CHECK(missing.error().to_text() ==
          "pinning 'deb/python-headers@3.11': the configured archive has no package "
          "'libpython3.11-dev': run 'apt-get update', or use a machine with Debian 12");
}

TEST_CASE("a requirement that no lock entry satisfies is named", "[toolchain][lock]") {
    const std::vector wanted{requirement("wheel/torch@9.1.0#include"), requirement("deb/gcc@12")};
    const auto entries = select_entries(wanted, default_lock(), {});
    REQUIRE(!entries);
    CHECK(entries.error().message == "the lock does not pin 'wheel/torch@9.1.0#include' for "
                                     "x86_64-linux: run 'kernel-builder lock'");
}

TEST_CASE("the default lock pins what the support matrix needs on this platform",
          "[toolchain][lock]") {
    const plan::SupportMatrix& matrix = plan::default_support_matrix();
    std::vector<Requirement> wanted = matrix.python;
    const auto add = [&](const auto& rows) {
        for (const auto& row : rows) {
            if (row.unavailable.empty()) {
                wanted.insert(wanted.end(), row.requirements.begin(), row.requirements.end());
            }
        }
    };
    for (const plan::HostRow& host : matrix.hosts) {
        for (const Requirement& needed : host.requirements) {
            INFO(needed.id());
            CHECK_FALSE(plan::entries_for(default_lock(), needed, host.platform).empty());
        }
    }
    add(matrix.hosts);
    add(matrix.torch);
    add(matrix.tvm_ffi);
    add(matrix.toolkits);
    for (const plan::DependencyRow& row : matrix.dependencies) {
        std::ranges::copy_if(row.requirements, std::back_inserter(wanted), [](const auto& needed) {
            return needed.provider == "wheel"; // others come from sources that users configure
        });
    }
    for (const Requirement& needed : wanted) {
        INFO(needed.id());
        CHECK(provider_of(needed).has_value());
        CHECK(mount_of(needed).has_value());
        CHECK_FALSE(plan::entries_for(default_lock(), needed, {}).empty());
    }
    // Nobody carries what nobody needs.
    for (const plan::LockEntry& entry : default_lock().entries) {
        INFO(entry.id);
        CHECK(std::ranges::any_of(
            wanted, [&](const Requirement& needed) { return plan::satisfies(entry, needed); }));
    }
}

TEST_CASE("requirements have one place each", "[toolchain]") {
    const auto [id, place] = GENERATE(table<std::string, std::string>(
        {{"deb/gcc@12", "/usr"},
         {"deb/cross-gcc-aarch64@12", "/usr"},
         {"deb/python-headers@3.11", "/toolchain/python"},
         {"stub/manylinux_2_28@1", "/toolchain/stubs"},
         {"wheel/torch@2.11.0#include", "/toolchain/torch-2.11"},
         {"deb/host-gcc@11", "/usr"},
         {"deb/cuda-nvcc@12.4", "/toolchain/cuda-12.4"},
         {"deb/rocm@5.7", "/toolchain/rocm-5.7"},
         {"stub/amdhip64@5.7", "/toolchain/rocm-5.7"},
         {"wheel/nvidia-cuda-nvcc@13.0.88", "/toolchain/cuda-13.0"},
         {"wheel/nvidia-cuda-cccl@13.3.5.0.6#cuda-13.5", "/toolchain/cuda-13.5"},
         {"wheel/nvidia-cuda-cccl-cu12@12.4.127.post1", "/toolchain/cuda-12.4"},
         {"wheel/nvidia-cutlass@3.8.0.0#include", "/toolchain/cutlass-3.8"},
         {"wheel/apache-tvm-ffi@0.1.15.post2#include", "/toolchain/tvm-ffi-0.1"}}));
    CHECK(mount_of(requirement(id)).value() == place);
    CHECK_FALSE(mount_of(requirement("conda/x@1")));
    CHECK(mount_of(requirement("git/NVIDIA/cutlass@v3.9.2")).value() == "/toolchain/cutlass-3.9");
}
