// SPDX-License-Identifier: Apache-2.0
#include "cli/selection_options.hpp"

#include "support/catch.hpp"

namespace kb::cli {

TEST_CASE("selection flags become one selection", "[cli][selection]") {
    SelectionOptions options;
    CHECK_FALSE(options.any());
    options.torch = ">=2.12";
    options.backend = "cpu, cuda";
    options.arch = "9.0,gfx942";
    options.platform = "x86_64-linux";
    options.variants = {"torch-cuda"};
    options.all_rows = true;
    CHECK(options.any());
    Diagnostics diagnostics;
    const auto selection = resolve(options, diagnostics);
    REQUIRE(selection);
    CHECK(selection->torch.contains(Version{{2, 13}}));
    CHECK_FALSE(selection->torch.contains(Version{{2, 11}}));
    CHECK(selection->backends.size() == 2);
    CHECK(selection->archs.size() == 2);
    CHECK(selection->variants.front() == "torch-cuda");
    CHECK_FALSE(selection->bundle_only);
    CHECK(diagnostics.empty());
}

TEST_CASE("a selection flag that means nothing is told with the form", "[cli][selection]") {
    const auto said = [](const SelectionOptions& options) {
        Diagnostics diagnostics;
        CHECK_FALSE(resolve(options, diagnostics));
        REQUIRE_FALSE(diagnostics.empty());
        return to_text(diagnostics.items().front());
    };
    CHECK(said({.torch = "new"}).find("'new' is not a condition on a version") !=
          std::string::npos);
    CHECK(said({.arch = "90"}).find("did you mean '9.0'?") != std::string::npos);
    CHECK(said({.arch = "gfx9"}).find("no ROCm device is called 'gfx9'") != std::string::npos);
    CHECK(said({.backend = "cdua"}).find("did you mean 'cuda'?") != std::string::npos);
    CHECK(said({.platform = "linux"}).find("'linux' is not a platform") != std::string::npos);
    CHECK(said({.variants = {"torch"}}).find("list-variants") != std::string::npos);
}

} // namespace kb::cli
