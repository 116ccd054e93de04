// SPDX-License-Identifier: Apache-2.0
#include "registry/mirror.hpp"

#include "registry/registry_fixture.hpp"

#include <algorithm>

using namespace kb;
using namespace kb::registry;
using kb::registry::test::Fixture;

namespace {

const std::string kLibrary(100'000, 'L');

/// A registry in memory that can lie and break off.
class FakeSource final : public MirrorSource {
public:
    struct File {
        std::string content{};
        bool lfs = false;
    };

    std::map<std::string, std::map<std::string, File>> branches{};
    std::size_t break_after = ~std::size_t{0};    ///< Bytes of a fetch until it fails.
    std::map<std::string, std::string> instead{}; ///< What comes in the place of a file.
    std::vector<std::pair<std::string, std::uint64_t>> fetches{};

    Result<std::optional<hub::Refs>> read_refs() override {
        if (branches.empty()) {
            return std::optional<hub::Refs>{};
        }
        hub::Refs refs;
        for (const auto& [name, files] : branches) {
            refs.branches.push_back(
                {.name = name, .ref = "refs/heads/" + name, .target = commit_of(name)});
        }
        return std::optional{std::move(refs)};
    }

    Result<std::vector<hub::TreeEntry>> read_tree(const hub::GitOid& commit) override {
        std::vector<hub::TreeEntry> entries;
        for (const auto& [path, file] : files_of(commit)) {
            hub::TreeEntry entry{.size = file.content.size(), .path = RelPath::literal(path)};
            if (file.lfs) {
                entry.lfs = hub::LfsPointer{.oid = digest::sha256(file.content),
                                            .size = file.content.size()};
                entry.oid = hub::pointer_id(*entry.lfs);
            } else {
                entry.oid = hub::git_id(hub::GitKind::blob, file.content);
            }
            entries.push_back(std::move(entry));
        }
        return entries;
    }

    Result<void> fetch(const hub::GitOid& commit, const RelPath& path, MirrorSink& sink) override {
        fetches.emplace_back(path.text(), sink.position());
        const auto other = instead.find(path.text());
        const std::string content =
            other != instead.end() ? other->second : files_of(commit).at(path.text()).content;
        const std::string_view rest = std::string_view{content}.substr(sink.position());
        KB_TRY(sink.write(as_bytes(rest.substr(0, break_after))));
        return rest.size() > break_after
                   ? Result<void>{Error{.code = ErrorCode::transient, .message = "it broke off"}}
                   : Result<void>{};
    }

private:
    static hub::GitOid commit_of(const std::string& branch) { return digest::sha1(branch); }

    const std::map<std::string, File>& files_of(const hub::GitOid& commit) const {
        const auto found = std::ranges::find_if(
            branches, [&](const auto& branch) { return commit_of(branch.first) == commit; });
        return found->second;
    }
};

/// A source with a card and a version of two variants, and a registry to take it over.
struct World {
    World() {
        source.branches["main"] = {{"README.md", {.content = "# card\n"}}};
        source.branches["v1"] = {{"build/torch-cpu/__init__.py", {.content = "x = 1\n"}},
                                 {"build/torch-cpu/k.abi3.so", {.content = kLibrary, .lfs = true}},
                                 {"build/torch-cuda/__init__.py", {.content = "x = 2\n"}}};
        source.branches["work"] = {{"notes", {.content = "not asked for\n"}}};
        fixture.close();
    }

    Result<MirrorReport> mirror() {
        return mirror_into_root(
            fixture.root(), sys::real_file_system(), fixture.clock, source, options);
    }

    MirrorReport good() {
        auto report = mirror();
        INFO((report ? std::string{} : report.error().to_text()));
        REQUIRE(report.has_value());
        return std::move(*report);
    }

    std::string bad(ErrorCode code) {
        const auto report = mirror();
        REQUIRE_FALSE(report.has_value());
        CHECK(report.error().code == code);
        return report.error().to_text();
    }

    /// What a reader of the mirrored repository gets; "404" for what is not there.
    std::string read(const std::string& path) {
        fixture.open();
        const auto asked = fixture.ask("GET", "/kernels/acme/relu/resolve/" + path);
        fixture.close();
        return asked.status == 200 ? asked.body : std::to_string(asked.status);
    }

    Fixture fixture;
    FakeSource source;
    MirrorOptions options{.repo = hub::RepoId::parse(hub::RepoType::kernels, "acme/relu").value(),
                          .origin = "http://there",
                          .streams = 1};
};

} // namespace

TEST_CASE("card and versions are taken over, and only once", "[registry][mirror]") {
    World w;
    const MirrorReport report = w.good();
    REQUIRE(report.branches.size() == 2);
    CHECK(report.branches[1].name == "v1");
    CHECK(report.branches[1].added == 3);
    CHECK(report.bytes_fetched == 7 + 6 + 6 + kLibrary.size());
    CHECK(w.read("main/README.md") == "# card\n");
    CHECK(w.read("v1/build/torch-cpu/k.abi3.so") == kLibrary);
    CHECK(w.read("v1/build/torch-cuda/__init__.py") == "x = 2\n");
    CHECK(w.read("work/notes") == "404");
    w.source.fetches.clear();
    const MirrorReport again = w.good();
    CHECK(again.branches[1].unchanged == 3);
    CHECK(again.branches[1].commit == report.branches[1].commit);
    CHECK(w.source.fetches.empty());
    CHECK(sys::real_file_system().list(RootPaths{w.fixture.root()}.parts())->empty());
}

TEST_CASE("a mirror that breaks off goes on where it was", "[registry][mirror]") {
    World w;
    w.source.break_after = 60'000;
    CHECK(w.bad(ErrorCode::transient).contains("build/torch-cpu/k.abi3.so"));
    CHECK(w.read("v1/build/torch-cpu/__init__.py") == "404"); // nothing is half there
    w.source.fetches.clear();
    w.source.break_after = ~std::size_t{0};
    const MirrorReport report = w.good();
    CHECK(std::ranges::find(w.source.fetches,
                            std::pair<std::string, std::uint64_t>{
                                "build/torch-cpu/k.abi3.so", 60'000}) != w.source.fetches.end());
    CHECK(report.bytes_here == 60'000);
    CHECK(w.read("v1/build/torch-cpu/k.abi3.so") == kLibrary);
}

TEST_CASE("other bytes than the listing promises are not taken", "[registry][mirror]") {
    const auto [path, text] = GENERATE(table<std::string, std::string>(
        {{"build/torch-cpu/k.abi3.so", std::string(kLibrary.size(), 'X')}, // same size
         {"build/torch-cpu/k.abi3.so", kLibrary + "more"},
         {"build/torch-cpu/__init__.py", "y = 1\n"},
         {"build/torch-cpu/__init__.py", "y\n"}}));
    World w;
    w.source.instead[path] = text;
    CHECK(w.bad(ErrorCode::corrupt).contains(path));
    CHECK(w.read("v1/build/torch-cuda/__init__.py") == "404");
    // Wrong bytes are no beginning of the right ones.
    w.source.instead.clear();
    static_cast<void>(w.good());
    CHECK(w.read("v1/build/torch-cpu/k.abi3.so") == kLibrary);
}

TEST_CASE("only the chosen variants and branches come", "[registry][mirror]") {
    World w;
    w.options.variants = {"torch-cpu"};
    w.options.branches = {"v1"};
    static_cast<void>(w.good());
    CHECK(w.read("v1/build/torch-cpu/__init__.py") == "x = 1\n");
    CHECK(w.read("v1/build/torch-cuda/__init__.py") == "404");
    CHECK(w.read("main/README.md") == "404");
    w.options.variants = {"torch-rocm"};
    CHECK(w.bad(ErrorCode::not_found).contains("torch-rocm"));
    w.options.branches = {"v2"};
    CHECK(w.bad(ErrorCode::not_found).contains("v2"));
    w.source.branches.clear();
    CHECK(w.bad(ErrorCode::not_found).contains("acme/relu"));
}

TEST_CASE("what is published here stays unless it is to be replaced", "[registry][mirror]") {
    World w;
    static_cast<void>(w.good());
    w.source.branches["v1"]["build/torch-cpu/__init__.py"].content = "import evil\n";
    CHECK(w.bad(ErrorCode::denied).contains("build/torch-cpu/__init__.py"));
    CHECK(w.read("v1/build/torch-cpu/__init__.py") == "x = 1\n");
    w.options.replace = MirrorReplace::yes;
    static_cast<void>(w.good());
    CHECK(w.read("v1/build/torch-cpu/__init__.py") == "import evil\n");
}

TEST_CASE("a path that no registry may hold is refused", "[registry][mirror]") {
    World w;
    w.source.branches["v1"][".git/hooks/x"] = {.content = "#!/bin/sh\n"};
    CHECK(w.bad(ErrorCode::corrupt).contains(".git"));
    CHECK(w.read("v1/build/torch-cpu/__init__.py") == "404");
}

TEST_CASE("what is mirrored beside a server is read from it", "[registry][mirror]") {
    World w;
    w.fixture.open();
    w.good();
    const auto asked =
        w.fixture.ask("GET", "/kernels/acme/relu/resolve/v1/build/torch-cpu/k.abi3.so");
    CHECK(asked.body == kLibrary);
    // Two of them would write the same unfinished files.
    const auto other = sys::FileLock::try_acquire(w.fixture.root() / "MIRROR");
    REQUIRE(other.has_value());
    CHECK(w.bad(ErrorCode::denied).contains("another 'registry mirror'"));
}
