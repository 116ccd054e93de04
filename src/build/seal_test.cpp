// SPDX-License-Identifier: Apache-2.0
#include "build/seal.hpp"

#include "support/catch.hpp"
#include "support/elf_builder.hpp"
#include "support/support.hpp"

#include <algorithm>

namespace kb::build {
namespace {

TEST_CASE("a staged library must not name the project's folder", "[build][seal]") {
    const test::TempDir dir;
    project::Project project;
    project.text.root = dir / "my project";
    const Workspace workspace{.state = project.state(), .level = sandbox::Level::plain};
    const plan::SourceSnapshot snapshot;
    const plan::Plan plan;
    const plan::Lock lock;
    const SealContext context{.fs = sys::real_file_system(),
                              .workspace = workspace,
                              .project = project,
                              .snapshot = snapshot,
                              .plan = plan,
                              .lock = lock};
    plan::PlannedVariant variant;
    variant.name = *backend::VariantName::parse("torch-stable-abi211-cpu-x86_64-linux");
    const auto look = [&](const std::string& text) {
        test::write_text(workspace.stage(variant.name.text()) / "_k.abi3.so",
                         test::build_elf({.soname = "k"}) + std::string(1, '\0') + text);
        const auto report = check_stage(context, variant);
        REQUIRE(report);
        return std::ranges::count(report->findings, "host-paths", &check::Finding::check);
    };
    CHECK(look("/src/k.cu") == 0);
    CHECK(look(project.root().string()) == 1);
    CHECK(look(workspace.view().string()) == 1);
}

} // namespace
} // namespace kb::build
