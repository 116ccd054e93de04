// SPDX-License-Identifier: Apache-2.0
#include "config/test_support.hpp"
#include "support/support.hpp"

#include <filesystem>

using namespace kb::config::test; // NOLINT(google-build-using-namespace): helpers of these tests
using kb::Diagnostics;
using kb::Version;
using kb::backend::BackendId;
using kb::backend::FrameworkId;
using kb::config::Config;
using kb::config::Edition;
using kb::config::NativeDependency;
using kb::config::Torch;
using kb::config::TorchNoarch;
using kb::config::TvmFfi;

namespace {

const std::string kGeneral = "[general]\n"
                             "name = \"demo-op\"\n"
                             "version = 1\n"
                             "edition = 5\n"
                             "license = \"apache-2.0\"\n"
                             "backends = [\"cpu\"]\n";

} // namespace

TEST_CASE("edition 5 is read with the place of every value", "[config][read]") {
    const Config config = good(R"([general]
name = "all-keys"
version = 7
edition = 5
license = "bsd-3-clause"
upstream = "https://git.example.org/team/all-keys"
source = "git@git.example.org:team/build.git"
backends = ["cpu", "cuda", "xpu"]
python-depends = ["einops"]
kernel-depends = [ { repo-id = "acme/base", version = 2 } ]

[general.cuda]
minver = "12.6"
maxver = "13.2"
python-depends = ["nvidia-cutlass-dsl"]
kernel-depends = [{ repo-id = "acme/cuda-only", revision = "main" }]

[general.neuron]
python-depends = ["nki"]

[general.hub]
repo-id = "acme/all-keys"
branch = "release"

[torch]
src = ["torch-ext/torch_binding.cpp"]
include = ["inc"]
minver = "2.9"
pyext = ["py", "json"]
cxx-flags = ["-O3"]

[torch.stable-abi]
cpu = "2.11"

[kernel.z]
backend = "cuda"
depends = ["torch", "cutlass_4_0"]
src = ["z.cu"]
include = ["zinc"]
cxx-flags = ["-g"]
cuda-capabilities = ["9.0a"]
cuda-flags = ["--use_fast_math"]
cuda-minver = "12.8"

[kernel.a]
backend = "xpu"
depends = ["sycl_tla"]
src = ["a.cpp"]
sycl-flags = ["-fsycl"]

[kernel.amd]
backend = "rocm"
depends = []
src = []
rocm-archs = ["gfx942"]
hip-flags = ["-DHIP"]
)");
    CHECK(config.edition == Edition::v5);
    CHECK(config.span.file == "build.toml");
    CHECK(config.name.text() == "all-keys");
    CHECK(config.name_span.line == 2);
    CHECK(config.version.value == 7);
    CHECK(config.license.value == "bsd-3-clause");
    CHECK(config.upstream->value.text() == "https://git.example.org/team/all-keys");
    CHECK(config.source->value.normalised() == "ssh://git@git.example.org/team/build.git");
    REQUIRE(config.backends.size() == 3);
    CHECK(config.backends[1].value == BackendId::cuda);
    CHECK(config.backends[1].span.column == 20);
    CHECK(kb::config::branch_of(config) == "release");
    CHECK(config.hub.repo_id->value == "acme/all-keys");

    CHECK(kb::config::kernel_depends_for(config, BackendId::cpu).size() == 1);
    const auto depends = kb::config::kernel_depends_for(config, BackendId::cuda);
    REQUIRE(depends.size() == 2);
    CHECK(depends[0].version->value == 2);
    CHECK(depends[1].revision->value == "main");
    CHECK(kb::config::python_depends_for(config, BackendId::cuda) ==
          std::vector<std::string>{"einops", "nvidia-cutlass-dsl"});
    CHECK(kb::config::python_depends_for(config, BackendId::neuron) ==
          std::vector<std::string>{"einops"});
    CHECK(kb::config::min_backend_version(config, BackendId::cuda) == Version{{12, 6}});
    CHECK(kb::config::max_backend_version(config, BackendId::cuda) == Version{{13, 2}});
    CHECK_FALSE(kb::config::min_backend_version(config, BackendId::rocm));
    CHECK(kb::config::min_torch_version(config) == Version{{2, 9}});
    CHECK_FALSE(kb::config::max_torch_version(config));

    CHECK(std::holds_alternative<Torch>(config.framework));
    CHECK(texts(kb::config::binding_src(config)) ==
          std::vector<std::string>{"torch-ext/torch_binding.cpp"});
    CHECK(texts(kb::config::binding_include(config)) == std::vector<std::string>{"inc"});
    CHECK(texts(kb::config::binding_cxx_flags(config)) == std::vector<std::string>{"-O3"});
    CHECK(kb::config::python_extensions(config) == std::vector<std::string>{"py", "json"});
    CHECK(kb::config::stable_abi_for(config, BackendId::cpu) == Version{{2, 11}});
    CHECK_FALSE(kb::config::stable_abi_for(config, BackendId::cuda));
    CHECK(kb::config::framework_for(config, BackendId::cpu) == FrameworkId::torch_stable_abi);
    CHECK(kb::config::framework_for(config, BackendId::cuda) == FrameworkId::torch);

    REQUIRE(config.sections.size() == 3);
    const kb::config::Section& z = config.sections[0];
    CHECK(z.id.value == "z");
    CHECK(z.span.line == 35);
    CHECK(z.depends[1].value == NativeDependency::cutlass_4_0);
    CHECK(texts(*z.cuda_capabilities) == std::vector<std::string>{"9.0a"});
    CHECK(texts(z.cuda_flags) == std::vector<std::string>{"--use_fast_math"});
    CHECK(z.cuda_minver->value == Version{{12, 8}});
    CHECK_FALSE(z.rocm_archs);
    CHECK(config.sections[1].id.value == "a");
    CHECK(texts(config.sections[1].sycl_flags) == std::vector<std::string>{"-fsycl"});
    CHECK(texts(*config.sections[2].rocm_archs) == std::vector<std::string>{"gfx942"});
    CHECK(kb::config::sections_of(config, BackendId::rocm).front()->id.value == "amd");
}

TEST_CASE("the other frameworks and the defaults", "[config][read]") {
    const Config noarch = good(kGeneral + "[torch-noarch]\ncuda_capabilities = [\"8.0\"]\n");
    CHECK(std::get<TorchNoarch>(noarch.framework).cuda_capabilities->size() == 1);
    CHECK_FALSE(std::get<TorchNoarch>(noarch.framework).rocm_archs);
    CHECK(kb::config::framework_for(noarch, BackendId::cpu) == FrameworkId::torch_noarch);
    CHECK(kb::config::python_extensions(noarch) == std::vector<std::string>{"py", "pyi"});
    CHECK(kb::config::binding_src(noarch).empty());
    CHECK(kb::config::branch_of(noarch) == "v1");
    CHECK(kb::config::extension_dir(noarch) == "torch-ext");

    const Config ffi = good(kGeneral + "[tvm-ffi]\nsrc = [\"b.cc\"]\n");
    CHECK(texts(std::get<TvmFfi>(ffi.framework).src) == std::vector<std::string>{"b.cc"});
    CHECK(kb::config::framework_for(ffi, BackendId::cpu) == FrameworkId::tvm_ffi);
    CHECK(kb::config::extension_dir(ffi) == "tvm-ffi-ext");

    const Config stable = good(kGeneral + "[torch]\nstable-abi = \"2.11\"\n");
    CHECK(kb::config::stable_abi_for(stable, BackendId::rocm) == Version{{2, 11}});
}

TEST_CASE("all problems come in one pass, each with place and advice", "[config][read]") {
    const std::string text = R"([general]
name = "Demo_Op"
version = "1"
edition = 5
licence = "mit"
backends = ["CUDA", "gpu", 3]
upstream = "ftp://a/b"
kernel-depends = [{ repo-id = "a/b" }, "x", { version = 1, revision = "y", extra = 1 }]

[general.cuda]
minver = 12.6
maxver = "12"

[torch]
src = "one.cpp"
stable-abi = { gpu = "2.11", cpu = "2" }

[torch-noarch]
cuda-capabilities = []

[kernel.main]
backend = "cpu"
src = ["a.cpp", 1]
cuda-flags = []
depends = ["cutlas_4_0"]

[kernel."odd name"]
backend = "tpu"
depends = []

[package]
)";
    Diagnostics diagnostics;
    CHECK_FALSE(try_read(text, diagnostics));
    diagnostics.sort();
    std::string out;
    for (const kb::Diagnostic& item : diagnostics.items()) {
        out += to_text(item, text);
    }
    kb::test::golden("config/all_problems.txt", out);
}

TEST_CASE("editions are chosen by their marks", "[config][edition]") {
    const std::string v4 = "[general]\nname = \"old\"\nversion = 3\nlicense = \"mit\"\n"
                           "backends = [\"cuda\"]\n[torch]\nstable-abi = \"2.11\"\n";
    Diagnostics diagnostics;
    const auto config = try_read(v4, diagnostics);
    REQUIRE(config);
    CHECK(config->edition == Edition::v4);
    CHECK(all(diagnostics) ==
          "build.toml:1:2: warning: this is a file of edition 4; the current edition is 5 "
          "[old-edition]\n"
          "note: run 'kernel-builder update-build' to rewrite it, comments are kept\n");
    CHECK(bad(v4 + "[general.tpu]\n") ==
          "build.toml:8:10: error: [general] has no key 'tpu' [unknown-key]\n"
          "note: 'tpu' came with edition 5; this file is read as edition 4, add 'edition = 5' to "
          "[general] if it is meant to be a current one\n");
    CHECK(good("[general]\nname = \"old\"\nbackends = [\"cpu\"]\n").edition == Edition::v3);
    CHECK(good("[general]\nname = \"old\"\nuniversal = true\n").edition == Edition::v2);
    CHECK(good("[general]\nname = \"old\"\n[torch]\nuniversal = true\n").edition == Edition::v1);
}

TEST_CASE("a wrong edition is named", "[config][edition]") {
    const auto with = [](std::string_view edition) {
        std::string text = kGeneral;
        text.replace(text.find("= 5"), 3, "= " + std::string{edition});
        return bad(text + "[torch]\n");
    };
    CHECK(with("6") == "build.toml:4:11: error: edition 6 cannot be read, the current edition is 5 "
                       "[bad-edition]\nnote: upgrade kernel-builder\n");
    CHECK(with("3") ==
          "build.toml:4:11: error: edition 3 cannot be read, the current edition is 5 "
          "[bad-edition]\nnote: editions before 5 carry no 'edition' key: remove it and run "
          "'kernel-builder update-build', or write 5 if the file is a current one\n");
    CHECK(with("\"5\"") == "build.toml:4:11: error: 'edition' in [general] must be the integer 5, "
                           "not a string [bad-edition]\n");
    CHECK(with("-5") == "build.toml:4:11: error: 'edition' in [general] must be the integer 5, "
                        "not this number [bad-edition]\n");
}

TEST_CASE("edition 1 becomes sections by backend", "[config][edition]") {
    Diagnostics diagnostics;
    const auto config = try_read("[general]\nname = \"old_one\"\n[torch]\nsrc = [\"b.cpp\"]\n"
                                 "[kernel.m]\nlanguage = \"cuda-hipify\"\nsrc = [\"a.cu\"]\n"
                                 "depends = [\"torch\"]\nrocm-archs = [\"gfx942\"]\n"
                                 "cuda-capabilities = [\"8.0\"]\n"
                                 "[kernel.p]\nsrc = [\"p.cu\"]\ndepends = []\n"
                                 "[kernel.x]\nlanguage = \"metal\"\nsrc = [\"x.metal\"]\n"
                                 "depends = []\n",
                                 diagnostics);
    REQUIRE(config);
    CHECK(config->name.text() == "old-one");
    CHECK(config->version.value == 1);
    REQUIRE(config->sections.size() == 4);
    CHECK(config->sections[0].id.value == "m");
    CHECK(config->sections[0].cuda_capabilities->size() == 1);
    CHECK_FALSE(config->sections[0].rocm_archs);
    CHECK(config->sections[1].id.value == "m_rocm");
    CHECK(config->sections[1].backend.value == BackendId::rocm);
    CHECK(config->sections[1].rocm_archs->size() == 1);
    CHECK(config->sections[2].backend.value == BackendId::cuda);
    CHECK(config->sections[3].backend.value == BackendId::metal);
    CHECK(kb::config::distinct_backends(*config) ==
          std::vector<BackendId>{BackendId::cuda, BackendId::metal, BackendId::rocm});
    CHECK(all(diagnostics) ==
          "build.toml:1:2: warning: [general] names no licence, which editions from 4 on need "
          "[missing-license]\nnote: add for example license = \"apache-2.0\"\n"
          "build.toml:1:2: warning: this is a file of edition 1; the current edition is 5 "
          "[old-edition]\nnote: run 'kernel-builder update-build' to rewrite it, comments are "
          "kept\n"
          "build.toml:2:8: warning: 'old_one' is no legal kernel name any more, 'old-one' is used "
          "[old-name]\n");
    CHECK(bad("[general]\nname = \"ab\"\n[torch]\n[kernel.m]\nlanguage = \"cuda-hipify\"\n"
              "src = []\ndepends = []\n[kernel.m_rocm]\nsrc = []\ndepends = []\n")
              .find("'kernel.m_rocm', which exists already [name-clash]") != std::string::npos);
}

TEST_CASE("edition 2 and 3 keep their meaning", "[config][edition]") {
    const Config two = good("[general]\nname = \"two\"\ncuda-minver = \"12.4\"\n"
                            "[torch]\nsrc = []\n"
                            "[kernel.m]\nbackend = \"cuda\"\nsrc = []\ndepends = []\n");
    CHECK(two.edition == Edition::v2);
    CHECK(kb::config::min_backend_version(two, BackendId::cuda) == Version{{12, 4}});
    CHECK(kb::config::distinct_backends(two) == std::vector<BackendId>{BackendId::cuda});

    const Config universal = good("[general]\nname = \"uni\"\nuniversal = true\n"
                                  "[torch]\npyext = [\"json\"]\n");
    CHECK(std::get<TorchNoarch>(universal.framework).pyext->size() == 1);
    CHECK(kb::config::distinct_backends(universal).size() == 7);

    const Config three = good("[general]\nname = \"three\"\nbackends = [\"rocm\"]\n");
    CHECK(std::holds_alternative<TorchNoarch>(three.framework));
    // The reference lost the whole table here when it migrated.
    CHECK(bad("[general]\nname = \"three\"\nbackends = [\"rocm\"]\n[torch]\ncxx-flags = []\n") ==
          "build.toml:5:1: error: [torch] has no key 'cxx-flags' [unknown-key]\n"
          "note: 'cxx-flags' came with edition 4; this file is read as edition 3, add 'edition = "
          "5' to [general] if it is meant to be a current one\n");
}

TEST_CASE("a document that is no table is refused, not a crash", "[config][read]") {
    Diagnostics diagnostics;
    CHECK_FALSE(kb::config::read(kb::document::Node{1}, diagnostics));
    CHECK(diagnostics.items().size() == 1);
    CHECK(bad("") == "build.toml:1:1: error: build.toml needs one of the tables [torch], "
                     "[torch-noarch] and [tvm-ffi] [missing-framework]\n"
                     "note: [torch] has compiled kernels, [torch-noarch] only Python such as "
                     "Triton kernels\n"
                     "build.toml:1:1: error: build.toml needs the key 'general' [missing-key]\n");
    CHECK(bad("general = 1\nkernel = 2\ntorch = 3\n").find("'torch' must be a table") !=
          std::string::npos);
    CHECK(bad("general = 1\nkernel.x = 2\n[torch]\n").find("a section is written [kernel.NAME]") !=
          std::string::npos);
}

TEST_CASE("samples are accepted and rejected as their folder says", "[config][read]") {
    const std::filesystem::path samples =
        kb::test::source_dir() / "tests" / "interop" / "oracle" / "samples";
    std::size_t seen = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{samples}) {
        if (entry.path().extension() != ".toml") {
            continue;
        }
        Diagnostics diagnostics;
        const auto config = try_read(kb::test::read_text(entry.path()), diagnostics);
        const bool good_folder = entry.path().parent_path().filename() == "good";
        CAPTURE(entry.path().string(), all(diagnostics));
        // The reference does not read editions before 4, we do.
        CHECK((config.has_value() && config->edition >= Edition::v4) == good_folder);
        CHECK(config.has_value() == !diagnostics.has_errors());
        ++seen;
    }
    CHECK(seen >= 59);
}
