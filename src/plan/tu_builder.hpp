// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/include_graph.hpp"
#include "plan/matrix_index.hpp"
#include "plan/plan.hpp"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kb::plan {

/// What one source of a backend is told, the same for all torch versions.
struct Job {
    const SourceFile* file = nullptr;
    backend::SourceKind kind = backend::SourceKind::cxx;
    std::string section{};
    /// Relative to the source root until all are known, then as the compiler sees them.
    std::vector<std::string> include{};
    std::vector<std::string> cxx_flags{};
    std::vector<std::string> device_flags{};
    std::vector<std::string> archs{};
    std::vector<const DependencyRow*> dependencies{};
    Reach reach{};
    /// Of the source's path: for the compiler's own random names.
    std::string seed{};
    /// Digests of the source and of the headers that it reaches: lines of its TUs' keys.
    std::string content{};
};

/// The lock's answer to one requirement.
struct Pinned {
    Requirement requirement{};
    std::string id{};
    /// Digest over all entries that satisfy it; "" when there is none.
    std::string digest{};
};

using Pins = std::vector<const Pinned*>;

/// Rows of the matrix that one variant is made from.
struct VariantRows {
    const HostRow* host = nullptr;
    const ToolkitRow* toolkit = nullptr;
    /// Of torch or tvm-ffi: the headers.
    const FrameworkRow* framework = nullptr;
};

/// Makes the distinct TUs of a plan. One for the whole of make(): equal requests give the TU that
/// is there already.
class TuBuilder {
public:
    TuBuilder(const PlanInput& input, Diagnostics& diagnostics);

    /// Makes room for the TUs of that many variants.
    void expect(std::size_t variants);
    [[nodiscard]] VariantRows rows_for(const ChosenVariant& variant) const;
    /// Jobs of a variant's backend with its toolkit, made once for all variants that share them;
    /// mistakes are reported once.
    [[nodiscard]] const std::vector<Job>& jobs_for(const ChosenVariant& variant,
                                                   const VariantRows& rows);
    /// The TU of a job in a variant.
    [[nodiscard]] const Tu& tu_for(const Job& job,
                                   const ChosenVariant& variant,
                                   const VariantRows& rows,
                                   const std::string& ops_id);
    /// What the lock says about all requirements of a variant, sorted by id, each once.
    [[nodiscard]] Pins pins_for(const ChosenVariant& variant, const VariantRows& rows);

    [[nodiscard]] std::vector<Tu> take_tus();

private:
    struct Context;

    void add_binding_jobs(std::vector<Job>& jobs, BackendId backend);
    void add_section_jobs(std::vector<Job>& jobs,
                          const config::Section& section,
                          const SectionArchs& archs,
                          const ToolkitRow& toolkit);
    /// Adds the source, or merges the flags into a job of the same source.
    void add_job(std::vector<Job>& jobs, Job job);
    void add_source(std::vector<Job>& jobs,
                    const Job& common,
                    const document::Located<std::string>& source,
                    BackendId backend);
    /// Flags that no command line of a build script can hold.
    void refuse_control_characters(const Job& job, const Span& place);
    [[nodiscard]] std::vector<std::string> include_dirs(const config::Strings& list);
    [[nodiscard]] std::vector<const DependencyRow*> dependency_rows(const config::Section& section);
    [[nodiscard]] Context
    context_for(const Job& job, const ChosenVariant& variant, const VariantRows& rows) const;
    /// Looked up once a list and platform.
    [[nodiscard]] const Pins& pinned(const std::vector<Requirement>& list, const HostRow& host);
    [[nodiscard]] Words
    command_for(const Job& job, const Context& context, const std::string& ops_id) const;
    /// What decides the object of a job.
    [[nodiscard]] Pins pins_for(const Job& job, const Context& context);
    [[nodiscard]] Tu make_tu(const Job& job, const Context& context, const std::string& ops_id);

    using JobsKey = std::pair<backend::FrameworkId, const ToolkitRow*>;

    struct TuKey {
        const Job* job = nullptr;
        const HostRow* host = nullptr;
        const FrameworkRow* framework = nullptr;

        bool operator==(const TuKey&) const = default;
    };

    struct TuKeyHash {
        std::size_t operator()(const TuKey& key) const;
    };

    struct ListKey {
        const HostRow* host = nullptr;
        const std::vector<Requirement>* list = nullptr;

        bool operator==(const ListKey&) const = default;
    };

    struct ListKeyHash {
        std::size_t operator()(const ListKey& key) const;
    };

    const PlanInput& input_;
    Diagnostics& diagnostics_;
    IncludeGraph graph_;
    MatrixIndex index_;
    std::string limited_api_; ///< The definition that code with Python.h gets.
    std::map<JobsKey, std::vector<Job>> jobs_;
    std::unordered_map<TuKey, const Tu*, TuKeyHash> by_request_;
    std::unordered_map<std::string_view, const Tu*> by_id_;
    std::deque<Tu> tus_;
    std::map<std::pair<const HostRow*, std::string>, Pinned> pinned_;
    std::unordered_map<ListKey, Pins, ListKeyHash> pinned_lists_;
    std::set<Span> reported_;
    std::string key_text_; ///< Of the TU at hand.
};

/// The lists that a variant's requirements stand in: host, toolkit, headers, python, dependencies.
[[nodiscard]] std::vector<const std::vector<Requirement>*>
requirement_lists(const config::Config& config,
                  const SupportMatrix& matrix,
                  const ChosenVariant& variant,
                  const VariantRows& rows);

} // namespace kb::plan
