// SPDX-License-Identifier: Apache-2.0
#include "backend/mounts.hpp"
#include "store/archive_builder.hpp"
#include "store/blob_store.hpp"
#include "support/catch.hpp"
#include "support/loopback_server.hpp"
#include "support/support.hpp"
#include "sys/clock.hpp"
#include "toolchain/installed.hpp"
#include "toolchain/provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

using namespace kb;
using namespace kb::toolchain;
using backend::Requirement;
using store::ArchiveKind;
using store::test::Item;
using store::test::What;

namespace {

class PassingClock final : public sys::Clock {
public:
    std::int64_t unix_seconds() override { return 0; }

    std::chrono::steady_clock::time_point now() override { return {}; }

    bool sleep(std::chrono::milliseconds /*duration*/) override {
        ++sleeps;
        return true;
    }

    int sleeps = 0;
};

/// A folder that a loopback server gives out, and the store of a user who configured it.
struct Ground {
    kb::test::TempDir dir{};
    PassingClock clock{};
    sys::EnvironmentMap environment{{"PATH", "/usr/bin:/bin"},
                                    {"TMPDIR", (dir / "tmp").string()},
                                    {"HOME", (dir / "tmp").string()},
                                    {"GIT_AUTHOR_NAME", "t"},
                                    {"GIT_AUTHOR_EMAIL", "t@example.org"},
                                    {"GIT_COMMITTER_NAME", "t"},
                                    {"GIT_COMMITTER_EMAIL", "t@example.org"}};
    Machine machine{sys::real_file_system(), sys::real_process_runner(), environment, clock};
    FetchOptions options{};
    kb::test::LoopbackServer server{[this](const kb::test::RawRequest& request) {
        return answer(request);
    }};

    Ground() {
        std::filesystem::create_directories(dir / "served");
        std::filesystem::create_directories(dir / "tmp");
    }

    std::string answer(const kb::test::RawRequest& request) const {
        const std::filesystem::path file = dir.path() / "served" / request.target.substr(1);
        if (!std::filesystem::is_regular_file(file)) {
            return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        }
        const std::string body = kb::test::read_text(file);
        return fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
    }

    void serve(const std::string& name, ArchiveKind kind, const std::vector<Item>& items) const {
        const std::filesystem::path path = dir.path() / "served" / name;
        std::filesystem::create_directories(path.parent_path());
        store::test::write_archive(path, kind, items);
    }

    [[nodiscard]] store::Store store() const {
        return store::Store::open(sys::real_file_system(), sys::real_clock(), dir / "store")
            .value();
    }

    [[nodiscard]] Result<plan::Lock> pin(std::string_view id) const {
        const std::vector wanted{Requirement::parse(id).value()};
        return resolve(wanted, {}, {}, Update::keep, machine, options);
    }

    [[nodiscard]] Result<FetchReport> fetch(const std::vector<plan::LockEntry>& entries) const {
        store::Store opened = store();
        return toolchain::fetch(entries, opened, machine, options);
    }

    /// The root of one requirement.
    [[nodiscard]] Result<std::vector<Root>> provide(std::string_view id,
                                                    const plan::Lock& lock) const {
        store::Store opened = store();
        const std::vector wanted{Requirement::parse(id).value()};
        return toolchain::provide(wanted, lock, {}, opened, machine, options, {});
    }

    /// A failed fetch left nothing, and what was there is whole.
    [[nodiscard]] bool is_unharmed(std::size_t packages = 0) const {
        sys::FileSystem& fs = sys::real_file_system();
        store::Store opened = store();
        return fs.list(dir / "store/pkg")->size() == packages &&
               fs.list(dir / "store/tmp")->empty() && fs.list(dir / "tmp")->empty() &&
               opened.verify()->findings.empty();
    }

    void git(const std::string& words) const {
        const auto result =
            sys::real_process_runner().run({.argv = {"sh", "-c", "git -C upstream " + words},
                                            .environment = environment,
                                            .working_directory = dir.path()});
        INFO((result ? result->err : result.error().to_text()));
        REQUIRE(result);
        REQUIRE(result->status.ok());
    }
};

template <typename T>
std::string message(const Result<T>& result) {
    return result ? std::string{} : result.error().to_text();
}

const std::vector<Item> kLibrary{{.path = "lib-1.2/include/lib.h", .content = "int lib;\n"},
                                 {What::symlink, "lib-1.2/include/l.h", "lib.h"}};

} // namespace

TEST_CASE("an archive is pinned from a mirror by digest and comes from any other",
          "[toolchain][archive]") {
    const auto [file, kind] = GENERATE(table<std::string, ArchiveKind>(
        {{"lib-1.2.tar.xz", ArchiveKind::tar}, {"lib-1.2.zip", ArchiveKind::zip}}));
    Ground ground;
    ground.serve(file, kind, kLibrary);
    ground.options.sources = {{"archive", ground.server.url()}};
    const auto lock = ground.pin("archive/lib@1.2#lib-1.2");
    INFO(message(lock));
    REQUIRE(lock);
    REQUIRE(lock->entries.size() == 1);
    CHECK(lock->entries[0].file == file);
    CHECK(lock->entries[0].sha256 ==
          digest::sha256(kb::test::read_text(ground.dir.path() / "served" / file)));
    CHECK(plan::write_lock(*lock).find("127.0.0.1") == std::string::npos);
    // Another place, under another name, is as good: the digest counts.
    std::filesystem::create_directories(ground.dir / "disk");
    std::filesystem::rename(ground.dir.path() / "served" / file, ground.dir / "disk/v1.2");
    ground.options.sources = {{"archive", "http://127.0.0.1:1/"},
                              {"archive/lib", (ground.dir / "disk/v{version}").string()}};
    const auto roots = ground.provide("archive/lib@1.2#lib-1.2", *lock);
    INFO(message(roots));
    REQUIRE(roots);
    CHECK(roots->front().mount == "/toolchain/lib-1.2");
    CHECK(kb::test::read_text(roots->front().host / "include/l.h") == "int lib;\n");
    CHECK(ground.is_unharmed(1));
}

TEST_CASE("what no source is configured for says what to configure", "[toolchain][archive]") {
    Ground ground;
    const auto lock = ground.pin("archive/lib@1.2");
    REQUIRE(!lock);
    CHECK(lock.error().to_text() ==
          "pinning 'archive/lib@1.2': no source of 'archive/lib@1.2' is configured: set "
          "\"archive/lib\" or \"archive\" in [sources] of config.toml, or give a directory of "
          "files with --from");
    ground.options.sources = {{"archive", ground.server.url("/dir?token=secret")}};
    const auto gone = ground.pin("archive/lib@1.2");
    REQUIRE(!gone);
    CHECK(gone.error().code == ErrorCode::not_found);
    CHECK(gone.error().to_text().find("secret") == std::string::npos);
    CHECK(ground.is_unharmed());
}

TEST_CASE("a source that answers with something else harms nothing", "[toolchain][archive]") {
    Ground ground;
    ground.serve("lib-1.2.tar.xz", ArchiveKind::tar, kLibrary);
    const std::filesystem::path file = ground.dir / "served/lib-1.2.tar.xz";
    const std::string good = kb::test::read_text(file);
    ground.options.sources = {{"archive", ground.server.url()}};
    const plan::Lock lock = ground.pin("archive/lib@1.2#lib-1.2").value();
    SECTION("a page instead of the file") {
        kb::test::write_text(file, "\n<!DOCTYPE html><html>log in</html>");
        const auto report = ground.fetch(lock.entries);
        REQUIRE(!report);
        CHECK(report.error().code == ErrorCode::corrupt);
        CHECK(message(report).find("an HTML page: a proxy or a log-in stands before the file") !=
              std::string::npos);
        const auto pinned = ground.pin("archive/lib@1.2");
        REQUIRE(!pinned);
        CHECK(message(pinned).find("is an HTML page") != std::string::npos);
    }
    SECTION("a part of the file") {
        kb::test::write_text(file, good.substr(0, good.size() / 2));
        const auto report = ground.fetch(lock.entries);
        REQUIRE(!report);
        CHECK(message(report).find(lock.entries[0].sha256.hex() + " is pinned") !=
              std::string::npos);
    }
    SECTION("a file of another kind cannot be pinned") {
        kb::test::write_text(file, "MZ program");
        CHECK(message(ground.pin("archive/lib@1.2")).find("no archive; nothing was pinned") !=
              std::string::npos);
    }
    CHECK(ground.is_unharmed());
    kb::test::write_text(file, good);
    CHECK(ground.fetch(lock.entries));
    CHECK(ground.is_unharmed(1));
}

TEST_CASE("a hostile archive is refused although it is the pinned one", "[toolchain][archive]") {
    const auto [what, items] = GENERATE(table<std::string, std::vector<Item>>(
        {{"unsafe path", {{.path = "lib-1.2/../../escape", .content = "x"}}},
         {"unsafe path", {{.path = "/etc/escape", .content = "x"}}},
         {"leaves the archive", {{What::symlink, "out", "../../../etc"}}},
         {"leaves the archive", {{What::symlink, "out", "/etc"}}},
         {"lies below", {{What::symlink, "d", "e"}, {.path = "d/f", .content = "x"}}},
         {"neither a file nor a link", {{What::fifo, "pipe", ""}}},
         {"more than the limit", {{.path = "zeros", .content = std::string(80U << 20U, '\0')}}}}));
    Ground ground;
    ground.serve("lib-1.2.tar.xz", ArchiveKind::tar, items);
    ground.options.sources = {{"archive", (ground.dir / "served").string()}};
    const plan::Lock lock = ground.pin("archive/lib@1.2").value();
    const auto report = ground.fetch(lock.entries);
    REQUIRE(!report);
    CHECK(report.error().code == ErrorCode::corrupt);
    INFO(message(report));
    CHECK(message(report).find(what) != std::string::npos);
    CHECK(ground.is_unharmed());
}

TEST_CASE("a repository is pinned by commit and stays when the tag moves", "[toolchain][git]") {
    Ground ground;
    kb::test::write_text(ground.dir / "upstream/include/lib.h", "int one;\r\n");
    ground.git("init -q -b main . && git -C upstream add . && git -C upstream commit -qm one");
    ground.git("tag v3.9.2");
    ground.options.sources = {{"git/me/lib", (ground.dir / "upstream").string()}};
    const auto lock = ground.pin("git/me/lib@v3.9.2");
    INFO(message(lock));
    REQUIRE(lock);
    REQUIRE(lock->entries.size() == 1);
    CHECK(lock->entries[0].file.starts_with("me-lib-"));
    CHECK(lock->entries[0].file.size() == std::string_view{"me-lib-.tar"}.size() + 40);
    kb::test::write_text(ground.dir / "upstream/include/lib.h", "int two;\n");
    ground.git("commit -qam two && git -C upstream tag -f v3.9.2 >/dev/null");
    const auto roots = ground.provide("git/me/lib@v3.9.2", *lock);
    INFO(message(roots));
    REQUIRE(roots);
    CHECK(roots->front().mount == "/toolchain/lib-3.9");
    CHECK(kb::test::read_text(roots->front().host / "include/lib.h") == "int one;\r\n");
    CHECK(ground.is_unharmed(1));
    // What is pinned now is the new one; a repository without the old commit says so.
    const auto moved = ground.pin("git/me/lib@v3.9.2");
    REQUIRE(moved);
    CHECK(moved->entries[0].file != lock->entries[0].file);
    Ground other;
    kb::test::write_text(other.dir / "upstream/x", "x");
    other.git("init -q -b main . && git -C upstream add . && git -C upstream commit -qm x");
    other.git("tag v3.9.2");
    other.options.sources = {{"git", (other.dir / "upstream").string()}};
    const auto gone = other.fetch(lock->entries);
    REQUIRE(!gone);
    CHECK(gone.error().code == ErrorCode::not_found);
    CHECK(message(gone).find("is pinned and not served") != std::string::npos);
    CHECK(other.is_unharmed());
}

TEST_CASE("the repository that the caller works in is not the one that is fetched",
          "[toolchain][git]") {
    Ground ground;
    kb::test::write_text(ground.dir / "upstream/lib.h", "int one;\n");
    ground.git("init -q -b main . && git -C upstream add . && git -C upstream commit -qm one");
    ground.git("tag v1");
    ground.options.sources = {{"git", (ground.dir / "upstream").string()}};
    const auto plain = ground.pin("git/me/lib@v1");
    INFO(message(plain));
    REQUIRE(plain);
    const std::filesystem::path other = ground.dir / "callers";
    for (const char* name :
         {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}) {
        ground.environment[name] = (other / name).string();
    }
    ground.environment["GIT_NAMESPACE"] = "elsewhere";
    const auto lock = ground.pin("git/me/lib@v1");
    INFO(message(lock));
    REQUIRE(lock);
    CHECK(*lock == *plain);
    CHECK(ground.fetch(lock->entries));
    CHECK_FALSE(std::filesystem::exists(other));
    CHECK(ground.is_unharmed(1));
}

TEST_CASE("an address of git that is an option is refused", "[toolchain][git]") {
    Ground ground;
    const std::string mark = (ground.dir / "mark").string();
    ground.options.sources = {{"git", "--upload-pack=touch " + mark}};
    const auto lock = ground.pin("git/me/lib@v1");
    REQUIRE(!lock);
    CHECK(lock.error().code == ErrorCode::denied);
    CHECK(message(lock).find("it begins with '-'") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(mark));
    CHECK(ground.is_unharmed());
}

namespace {

/// A channel with a CUDA 12.8 of a few bytes; newer and older builds stand beside.
std::string fake_channel(const Ground& ground) {
    std::string index;
    const auto add = [&](const std::string& name, const std::string& version, int build) {
        const std::string file = fmt::format("{}-{}-h_{}.conda", name, version, build);
        const std::string target = "targets/x86_64-linux/";
        std::vector<Item> items{{.path = target + "include/" + name + ".h", .content = version},
                                {.path = "info/index.json", .content = "{}"}};
        if (name == "cuda-nvcc-tools") {
            items.push_back({What::executable, "bin/nvcc", version});
            items.push_back({.path = "bin/nvcc.profile", .content = "of an environment"});
        }
        if (name == "cuda-nvvm-tools") {
            items.push_back({.path = "nvvm/bin/cicc", .content = "cicc"});
        }
        ground.serve("linux-64/" + file, ArchiveKind::conda, items);
        const std::string bytes = kb::test::read_text(ground.dir.path() / "served/linux-64" / file);
        index += fmt::format("{}\"{}\": {{\"name\": \"{}\", \"version\": \"{}\", "
                             "\"build_number\": {}, \"size\": {}, \"sha256\": \"{}\"}}",
                             index.empty() ? "" : ", ",
                             file,
                             name,
                             version,
                             build,
                             bytes.size(),
                             digest::sha256(bytes).hex());
    };
    for (const std::string name : {"cuda-cccl_linux-64",
                                   "cuda-crt-dev_linux-64",
                                   "cuda-crt-tools",
                                   "cuda-cudart-dev_linux-64",
                                   "cuda-cudart-static_linux-64",
                                   "cuda-cudart_linux-64",
                                   "cuda-driver-dev_linux-64",
                                   "cuda-nvcc-impl",
                                   "cuda-nvcc-tools",
                                   "cuda-nvvm-dev_linux-64",
                                   "cuda-nvvm-impl",
                                   "cuda-nvvm-tools",
                                   "cuda-profiler-api"}) {
        add(name, "12.8.93", 0);
    }
    add("cuda-nvcc-tools", "12.8.93", 1);
    add("cuda-nvcc-tools", "12.8.9", 7);
    add("cuda-nvcc-tools", "12.9.1", 0);
    return "{\"packages.conda\": {" + index +
           "}, \"packages\": {\"old-1-0.tar.bz2\": {\"name\": "
           "\"cuda-nvcc-tools\", \"version\": \"12.8.99\", \"md5\": \"0\"}}}";
}

} // namespace

TEST_CASE("a conda channel gives a toolkit in the layout of NVIDIA", "[toolchain][conda]") {
    Ground ground;
    kb::test::write_text(ground.dir / "served/linux-64/repodata.json", fake_channel(ground));
    ground.options.sources = {{"conda", ground.server.url()}};
    const auto lock = ground.pin("conda/cuda@12.8");
    INFO(message(lock));
    REQUIRE(lock);
    CHECK(lock->entries.size() == 13);
    const auto nvcc = std::ranges::find(
        lock->entries, "conda/cuda-nvcc-tools@12.8.93#cuda-12.8", &plan::LockEntry::id);
    REQUIRE(nvcc != lock->entries.end());
    CHECK(nvcc->file == "cuda-nvcc-tools-12.8.93-h_1.conda");
    CHECK(plan::parse_lock(plan::write_lock(*lock)).value() == *lock);
    const auto roots = ground.provide("conda/cuda@12.8", *lock);
    INFO(message(roots));
    REQUIRE(roots);
    const sys::Path& root = roots->front().host;
    CHECK(roots->front().mount == "/toolchain/cuda-12.8");
    CHECK(kb::test::read_text(root / "bin/nvcc") == "12.8.93");
    CHECK(kb::test::read_text(root / "bin/nvcc.profile").starts_with("TOP "));
    CHECK(kb::test::read_text(root / "include/cuda-crt-tools.h") == "12.8.93");
    CHECK((std::filesystem::status(root / "nvvm/bin/cicc").permissions() &
           std::filesystem::perms::owner_exec) != std::filesystem::perms::none);
    CHECK_FALSE(std::filesystem::exists(root / "info"));
    CHECK(ground.is_unharmed(13));
}

TEST_CASE("a conda channel that lacks a package or lies is named", "[toolchain][conda]") {
    Ground ground;
    const std::filesystem::path index = ground.dir / "served/linux-64/repodata.json";
    kb::test::write_text(index, fake_channel(ground));
    ground.options.sources = {{"conda", ground.server.url()}};
    const auto none = ground.pin("conda/cuda@12.6");
    REQUIRE(!none);
    CHECK(message(none).find("the configured conda channel has no version 12.6 of "
                             "'cuda-cccl_linux-64'") != std::string::npos);
    const plan::Lock lock = ground.pin("conda/cuda@12.8").value();
    const std::filesystem::path package =
        ground.dir / "served/linux-64/cuda-nvvm-impl-12.8.93-h_0.conda";
    const std::string good = kb::test::read_text(package);
    kb::test::write_text(package, "<html>");
    CHECK(message(ground.fetch(lock.entries)).find("an HTML page") != std::string::npos);
    CHECK(sys::real_file_system().list(ground.dir / "store/tmp")->empty());
    kb::test::write_text(package, good);
    REQUIRE(ground.fetch(lock.entries)); // what was there is kept, the rest follows
    CHECK(ground.is_unharmed(13));
    kb::test::write_text(index, "<!doctype html>");
    CHECK(message(ground.pin("conda/cuda@12.8")).find("is an HTML page, no index") !=
          std::string::npos);
    kb::test::write_text(index, "{\"packages.conda\": {");
    CHECK(message(ground.pin("conda/cuda@12.8")).find("repodata.json") != std::string::npos);
}

namespace {

void install_toolkit(const std::filesystem::path& root, std::string_view version) {
    kb::test::write_text(root / "targets/x86_64-linux/include/cuda.h",
                         fmt::format("#define CUDA_VERSION {}\n", version));
    kb::test::write_text(root / "targets/x86_64-linux/lib/libcudart.so.12.8.1", "runtime");
    kb::test::write_text(root / "targets/x86_64-linux/lib/libcublas.so.12", "large");
    std::filesystem::create_directory_symlink("targets/x86_64-linux/include", root / "include");
    std::filesystem::create_directory_symlink("targets/x86_64-linux/lib", root / "lib64");
    std::filesystem::create_symlink("libcudart.so.12.8.1", root / "lib64/libcudart.so");
    kb::test::write_text(root / "bin/nvcc", "driver");
    kb::test::write_text(root / "bin/nsys", "profiler");
    kb::test::write_text(root / "bin/nvcc.profile", "of the installation");
    kb::test::write_text(root / "nvvm/bin/cicc", "cicc");
}

} // namespace

TEST_CASE("an installed toolkit is pinned by all its files", "[toolchain][installed]") {
    Ground ground;
    const sys::Path cuda = ground.dir / "cuda-12.8";
    install_toolkit(cuda, "12080");
    store::Store store = ground.store();
    const auto toolkit = take_cuda_root(cuda, store, ground.machine);
    INFO(message(toolkit));
    REQUIRE(toolkit);
    CHECK(toolkit->entry.id == "host/cuda@12.8");
    const plan::Lock lock{.entries = {toolkit->entry}};
    CHECK(plan::parse_lock(plan::write_lock(lock)).value() == lock);
    // Offline: what was taken needs no network, and not the installation any more.
    std::filesystem::rename(cuda / "bin", cuda / "moved");
    ground.options.network = Network::offline;
    const auto roots = ground.provide("host/cuda@12.8", lock);
    INFO(message(roots));
    REQUIRE(roots);
    const sys::Path& root = roots->front().host;
    CHECK(roots->front().mount == "/toolchain/cuda-12.8");
    CHECK(kb::test::read_text(root / "bin/nvcc") == "driver");
    CHECK(kb::test::read_text(root / "bin/nvcc.profile").starts_with("TOP "));
    CHECK(kb::test::read_text(root / "lib/libcudart.so") == "runtime");
    CHECK(std::filesystem::exists(root / "lib64/libcudart.so.12.8.1"));
    CHECK_FALSE(std::filesystem::exists(root / "lib/libcublas.so.12"));
    CHECK_FALSE(std::filesystem::exists(root / "bin/nsys"));
    std::filesystem::rename(cuda / "moved", cuda / "bin");
    // The same files have the same digest, one changed header another.
    CHECK(take_cuda_root(cuda, store, ground.machine)->entry == toolkit->entry);
    kb::test::write_text(cuda / "include/cuda.h", "#define CUDA_VERSION 12080 // patched\n");
    CHECK(message(take_cuda_root(cuda, store, ground.machine)).find("tells no version") !=
          std::string::npos);
    kb::test::write_text(cuda / "include/cuda.h", "// patched\n#define CUDA_VERSION 12080\n");
    const auto patched = take_cuda_root(cuda, store, ground.machine);
    REQUIRE(patched);
    CHECK(patched->entry.sha256 != toolkit->entry.sha256);
    CHECK(sys::real_file_system().list(ground.dir / "store/tmp")->empty());
    CHECK(store.verify()->findings.empty());
}

TEST_CASE("an installed toolkit may hold files of any name", "[toolchain][installed]") {
    Ground ground;
    store::Store store = ground.store();
    install_toolkit(ground.dir / "cuda", "12080");
    kb::test::write_text(ground.dir / "cuda/include/read me%20.h", "one");
    const auto toolkit = take_cuda_root(ground.dir / "cuda", store, ground.machine);
    INFO(message(toolkit));
    REQUIRE(toolkit);
    kb::test::write_text(ground.dir / "cuda/include/read%20me .h", "one");
    const auto other = take_cuda_root(ground.dir / "cuda", store, ground.machine);
    REQUIRE(other);
    CHECK(other->entry.sha256 != toolkit->entry.sha256);
}

TEST_CASE("an installed toolkit takes the place of its row alone", "[toolchain][installed]") {
    Ground ground;
    store::Store store = ground.store();
    install_toolkit(ground.dir / "cuda", "12080");
    const auto toolkit = take_cuda_root(ground.dir / "cuda", store, ground.machine);
    REQUIRE(toolkit);
    const auto matrix = with_installed(plan::default_support_matrix(), *toolkit);
    REQUIRE(matrix);
    for (const plan::ToolkitRow& row : matrix->toolkits) {
        const plan::ToolkitRow& before =
            *plan::find_toolkit(plan::default_support_matrix(), row.backend, row.version);
        const bool its_own = row.archs.name == "CUDA 12.8";
        CHECK((row.requirements == before.requirements) != its_own);
        if (its_own) {
            CHECK(row.unavailable.empty());
            CHECK(row.requirements == std::vector{Requirement::parse("host/cuda@12.8").value()});
        }
    }
    install_toolkit(ground.dir / "old", "9020");
    const auto old = take_cuda_root(ground.dir / "old", store, ground.machine);
    CHECK(message(with_installed(plan::default_support_matrix(), old.value())) ==
          "CUDA 9.2 is not a version of the support matrix");
    CHECK(message(take_cuda_root(ground.dir / "nothing", store, ground.machine))
              .find("is no CUDA toolkit: it has no 'include/cuda.h'") != std::string::npos);
}
