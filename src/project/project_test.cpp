// SPDX-License-Identifier: Apache-2.0
#include "project/project.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>

namespace kb::project {
namespace {

constexpr std::string_view kConfig = R"([general]
name = "my-kernel"
version = 1
edition = 5
license = "apache-2.0"
backends = ["cpu"]

[torch]
src = ["torch-ext/torch_binding.cpp", "missing.h", "../outside.h"]

[kernel.main]
backend = "cpu"
depends = []
src = ["cpu/a.cpp", "cpu/a.h"]
)";

void write_project(const test::TempDir& dir) {
    test::write_text(dir / "build.toml", kConfig);
    test::write_text(
        dir / "torch-ext/torch_binding.cpp",
        "#include <torch/library.h>\nTORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, m) {}\n");
    test::write_text(dir / "torch-ext/my_kernel/__init__.py", "from ._ops import ops\n");
    test::write_text(dir / "torch-ext/my_kernel/_ops.py", "stale\n");
    test::write_text(dir / "torch-ext/my_kernel/__pycache__/x.pyc", "x");
    test::write_text(dir / "torch-ext/my_kernel/layers/table.json", "{}");
    test::write_text(dir / "cpu/a.cpp", "#include \"a.h\"\n");
    test::write_text(dir / "cpu/a.h", "");
    test::write_text(dir / "build/torch-cpu/metadata.json", "{}");
    test::write_text(dir / ".git/HEAD", "x");
}

Project open(const test::TempDir& dir) {
    Diagnostics diagnostics;
    auto project = judge_project(
        read_project(sys::real_file_system(), dir.path(), ".").value(), Validate::no, diagnostics);
    REQUIRE(project);
    return std::move(*project);
}

TEST_CASE("opening a project lists its files without build output", "[project]") {
    const test::TempDir dir;
    write_project(dir);
    const Project project = open(dir);
    CHECK(project.text.config_name == "build.toml");
    for (const RelPath& path : project.text.files) {
        CAPTURE(path.text());
        CHECK_FALSE(path.text().starts_with("build/"));
        CHECK_FALSE(path.text().starts_with(".git"));
    }
    CHECK(std::ranges::is_sorted(project.text.files));
}

TEST_CASE("a directory without a project says what to do", "[project]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    CHECK(read_project(fs, dir.path(), ".").error().message ==
          "'build.toml' is missing; 'kernel-builder init' makes a new project");
    CHECK(read_project(fs, dir.path(), "nowhere").error().code == ErrorCode::not_found);
    test::write_text(dir / "file", "");
    CHECK(read_project(fs, dir.path(), "file").error().message.find("is not a directory") !=
          std::string::npos);
}

TEST_CASE("a mistake names the file as the user named the directory", "[project]") {
    const test::TempDir dir;
    test::write_text(dir / "sub/build.toml", "[general\n");
    Diagnostics diagnostics;
    CHECK_FALSE(judge_project(read_project(sys::real_file_system(), dir.path(), "sub").value(),
                              Validate::yes,
                              diagnostics));
    REQUIRE(diagnostics.items().size() == 1);
    CHECK(diagnostics.items()[0].span.file == "sub/build.toml");
}

TEST_CASE("the snapshot holds declared sources and the package, nothing generated", "[project]") {
    const test::TempDir dir;
    write_project(dir);
    const plan::SourceSnapshot snapshot = read_snapshot(sys::real_file_system(), open(dir)).value();
    std::vector<std::string> files;
    for (const auto& file : snapshot.files) {
        files.push_back(file.path.text());
    }
    CHECK(files == std::vector<std::string>{"cpu/a.cpp", "cpu/a.h", "torch-ext/torch_binding.cpp"});
    CHECK(snapshot.files[2].names_ops);
    REQUIRE(snapshot.package.size() == 1); // table.json needs pyext, _ops.py is generated
    CHECK(snapshot.package[0].path.text() == "__init__.py");
}

TEST_CASE("a link in the package does not lead out of the project", "[project]") {
    const test::TempDir dir;
    write_project(dir);
    sys::FileSystem& fs = sys::real_file_system();
    const sys::Path link = dir / "torch-ext" / open(dir).config.name.module_name() / "more.py";
    test::write_text(dir / "shared/more.py", "x = 1\n");
    REQUIRE(fs.symlink("../../shared/more.py", link));
    CHECK(read_snapshot(fs, open(dir)).has_value());
    const test::TempDir outside;
    test::write_text(outside / "token.py", "secret\n");
    REQUIRE(fs.symlink(outside.path().string(), dir / "elsewhere"));
    const sys::Path up = outside.path().filename() / "token.py";
    for (const std::string& target : {(outside / "token.py").string(),
                                      std::string{"../../elsewhere/token.py"},
                                      "../../../" + up.string(),
                                      "../../elsewhere/../" + up.string()}) {
        CAPTURE(target);
        REQUIRE(fs.remove_file(link));
        REQUIRE(fs.symlink(target, link));
        const auto snapshot = read_snapshot(fs, open(dir));
        REQUIRE_FALSE(snapshot.has_value());
        CHECK(snapshot.error().message.contains("is a link out of the project"));
    }
}

TEST_CASE("the state directory is made once and never taken from somebody else", "[project]") {
    const test::TempDir dir;
    write_project(dir);
    sys::FileSystem& fs = sys::real_file_system();
    const Project project = open(dir);
    CHECK(make_state_directory(fs, project));
    CHECK(make_state_directory(fs, project));
    CHECK(test::read_text(dir / ".kernel-builder/.gitignore") == "*\n");
    const test::TempDir other;
    write_project(other);
    test::write_text(other / ".kernel-builder/mine.txt", "precious");
    CHECK(make_state_directory(fs, open(other)).error().code == ErrorCode::denied);
}

} // namespace
} // namespace kb::project
