// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.hpp"
#include "backend/variant.hpp"
#include "base/diagnostics.hpp"
#include "base/rel_path.hpp"
#include "base/version.hpp"
#include "document/node.hpp"
#include "document/reader.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// What the author wrote in build.toml, editions 1 to 5 in one model. Every value keeps its place.
namespace kb::config {

using backend::BackendId;
using document::Located;
using Strings = std::vector<Located<std::string>>;

enum class Edition : std::uint8_t { v1 = 1, v2 = 2, v3 = 3, v4 = 4, v5 = 5 };

/// `^[a-z][-a-z0-9]*[a-z0-9]$`, at least two characters.
class KernelName {
public:
    /// Of no kernel; text() is "".
    KernelName() = default;
    [[nodiscard]] static std::optional<KernelName> parse(std::string_view text);
    /// The rules and examples, for messages about a bad name.
    [[nodiscard]] static std::vector<std::string> rules();

    [[nodiscard]] const std::string& text() const { return text_; }

    /// Name of the Python module: '-' becomes '_'.
    [[nodiscard]] std::string module_name() const;

    auto operator<=>(const KernelName&) const = default;

private:
    explicit KernelName(std::string text) : text_{std::move(text)} {}

    std::string text_;
};

/// A URL as git takes it: https, http, git, ssh, git+ssh, git+https, git+http, or "user@host:path".
class GitUrl {
public:
    /// Of nothing; text() is "".
    GitUrl() = default;
    /// Nothing for another scheme or no URL; `reason` then says which.
    [[nodiscard]] static std::optional<GitUrl> parse(std::string_view text, std::string& reason);

    /// As written.
    [[nodiscard]] const std::string& text() const { return text_; }

    /// "host:path" as "ssh://host/path"; other URLs as written.
    [[nodiscard]] const std::string& normalised() const { return normalised_; }

    bool operator==(const GitUrl&) const = default;

private:
    GitUrl(std::string text, std::string normalised)
        : text_{std::move(text)}, normalised_{std::move(normalised)} {}

    std::string text_;
    std::string normalised_;
};

/// Another kernel that this one loads. Exactly one of `version` and `revision` is set.
struct KernelDependency {
    Located<std::string> repo_id{};
    std::optional<Located<std::uint64_t>> version{};
    std::optional<Located<std::string>> revision{};
    Span span{};

    bool operator==(const KernelDependency& other) const {
        return repo_id == other.repo_id && version == other.version && revision == other.revision;
    }
};

/// Native libraries that a section may name in `depends`.
enum class NativeDependency : std::uint8_t {
    cutlass_2_10,
    cutlass_3_5,
    cutlass_3_6,
    cutlass_3_8,
    cutlass_3_9,
    cutlass_4_0,
    cutlass_4_4,
    cutlass_4_5,
    sycl_tla,
    metal_cpp,
    torch
};

/// As spelt in build.toml: "cutlass_4_0", "metal-cpp".
[[nodiscard]] std::string_view to_text(NativeDependency dependency);
[[nodiscard]] std::optional<NativeDependency> parse_native_dependency(std::string_view text);

/// [general.cuda|neuron|tpu|xpu]. Only cuda has minver and maxver, tpu has no kernel_depends.
struct BackendTable {
    std::optional<Located<Version>> minver{};
    std::optional<Located<Version>> maxver{};
    std::vector<KernelDependency> kernel_depends{};
    Strings python_depends{};
    Span span{};

    bool operator==(const BackendTable& other) const {
        return minver == other.minver && maxver == other.maxver &&
               kernel_depends == other.kernel_depends && python_depends == other.python_depends;
    }
};

struct Hub {
    std::optional<Located<std::string>> repo_id{};
    std::optional<Located<std::string>> branch{};

    bool operator==(const Hub&) const = default;
};

/// Torch's stable ABI: one version for all backends, or one for each backend that is listed.
struct StableAbi {
    std::optional<Located<Version>> all{};
    std::map<BackendId, Located<Version>> by_backend{};
    Span span{};

    bool operator==(const StableAbi& other) const {
        return all == other.all && by_backend == other.by_backend;
    }
};

/// [torch]
struct Torch {
    Strings include{};
    std::optional<Located<Version>> minver{};
    std::optional<Located<Version>> maxver{};
    std::optional<Strings> pyext{};
    Strings src{};
    Strings cxx_flags{};
    std::optional<StableAbi> stable_abi{};

    bool operator==(const Torch&) const = default;
};

/// [torch-noarch]
struct TorchNoarch {
    std::optional<Strings> pyext{};
    std::optional<Strings> cuda_capabilities{};
    std::optional<Strings> rocm_archs{};

    bool operator==(const TorchNoarch&) const = default;
};

/// [tvm-ffi]
struct TvmFfi {
    Strings include{};
    std::optional<Strings> pyext{};
    Strings src{};
    Strings cxx_flags{};

    bool operator==(const TvmFfi&) const = default;
};

using Framework = std::variant<Torch, TorchNoarch, TvmFfi>;

/// [kernel.<id>]: sources and flags for one backend. `cuda_*` only for cuda, `rocm_archs` and
/// `hip_flags` only for rocm, `sycl_flags` only for xpu.
struct Section {
    Located<std::string> id{};
    Located<BackendId> backend{};
    std::vector<Located<NativeDependency>> depends{};
    Strings src{};
    Strings include{};
    Strings cxx_flags{};
    /// Absent means the default list of the toolkit.
    std::optional<Strings> cuda_capabilities{};
    Strings cuda_flags{};
    std::optional<Located<Version>> cuda_minver{};
    /// Absent means the default list.
    std::optional<Strings> rocm_archs{};
    Strings hip_flags{};
    Strings sycl_flags{};
    Span span{};

    bool operator==(const Section& other) const;
};

struct Config {
    Edition edition = Edition::v5;
    KernelName name{};
    Span name_span{};
    Located<std::uint64_t> version{};
    /// Licence id; "" when an edition before 4 named none.
    Located<std::string> license{};
    std::optional<Located<GitUrl>> upstream{};
    std::optional<Located<GitUrl>> source{};
    /// As written: may be empty or hold a backend twice, which `validate` reports.
    std::vector<Located<BackendId>> backends{};
    std::vector<KernelDependency> kernel_depends{};
    Strings python_depends{};
    /// [general.cuda], [general.neuron], [general.tpu], [general.xpu], where present.
    std::map<BackendId, BackendTable> backend_tables{};
    Hub hub{};
    Framework framework{};
    Span framework_span{};
    /// In file order; ids are unique.
    std::vector<Section> sections{};
    /// The file as a whole: `file` is what messages call it.
    Span span{};
};

/// Same meaning: edition and places are not compared.
[[nodiscard]] bool same_meaning(const Config& a, const Config& b);

/// Decodes a document of any edition and reports all problems in one pass. Nothing when there was
/// an error; an old edition is a warning that names the command which migrates it.
[[nodiscard]] std::optional<Config> read(const document::Node& root, Diagnostics& diagnostics);

/// What is legal but hardly meant, as warnings: sources that are not in `files` (all files of the
/// project, by path from its root), backends without sections and the reverse, bounds the wrong way
/// round, spellings that nobody uses. docs/diagnostics.md lists the ids.
void validate(const Config& config, std::span<const RelPath> files, Diagnostics& diagnostics);

/// Backends in the order of the format, each once.
[[nodiscard]] std::vector<BackendId> distinct_backends(const Config& config);
[[nodiscard]] bool lists_backend(const Config& config, BackendId backend);
/// Sections of one backend in file order.
[[nodiscard]] std::vector<const Section*> sections_of(const Config& config, BackendId backend);
/// Torch stable ABI that this backend is built against, if any.
[[nodiscard]] std::optional<Version> stable_abi_for(const Config& config, BackendId backend);
/// Framework of this backend's variants.
[[nodiscard]] backend::FrameworkId framework_for(const Config& config, BackendId backend);
/// general.kernel-depends, then those of the backend (cuda, neuron, xpu).
[[nodiscard]] std::vector<KernelDependency> kernel_depends_for(const Config& config,
                                                               BackendId backend);
/// general.python-depends, then those of the backend (cuda, tpu, xpu), as written.
[[nodiscard]] std::vector<std::string> python_depends_for(const Config& config, BackendId backend);
/// Bounds of the backend's toolkit: general.cuda.minver and maxver; nothing for other backends.
[[nodiscard]] std::optional<Version> min_backend_version(const Config& config, BackendId backend);
[[nodiscard]] std::optional<Version> max_backend_version(const Config& config, BackendId backend);
[[nodiscard]] std::optional<Version> min_torch_version(const Config& config);
[[nodiscard]] std::optional<Version> max_torch_version(const Config& config);
/// Folder of the Python package and the bindings: "torch-ext" or "tvm-ffi-ext".
[[nodiscard]] std::string_view extension_dir(const Config& config);
/// Extensions, without dot, of the package's files: `pyext`, or py and pyi.
[[nodiscard]] std::vector<std::string> python_extensions(const Config& config);
/// Include folders, sources and C++ flags of the binding; empty for a noarch kernel.
[[nodiscard]] const Strings& binding_include(const Config& config);
[[nodiscard]] const Strings& binding_src(const Config& config);
[[nodiscard]] const Strings& binding_cxx_flags(const Config& config);
/// Branch of the registry: hub.branch, or "v<version>".
[[nodiscard]] std::string branch_of(const Config& config);

/// A Python package that `python-depends` may name.
struct PythonDependency {
    std::string_view name{};
    std::string_view pip_package{};
    /// "" when importing it proves nothing.
    std::string_view import_name{};
    /// Absent: any backend.
    std::optional<BackendId> backend{};
};

[[nodiscard]] std::span<const PythonDependency> known_python_dependencies();
/// The row that `name` means for this backend: a general one, or one of the backend itself.
[[nodiscard]] const PythonDependency* find_python_dependency(std::string_view name,
                                                             BackendId backend);

} // namespace kb::config
