// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/include_graph.hpp"
#include "plan/plan.hpp"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kb::plan {

/// What one source of a backend is told, the same for all torch versions.
struct Job {
    const SourceFile* file = nullptr;
    backend::SourceKind kind = backend::SourceKind::cxx;
    std::string section{};
    /// Relative to the source root.
    std::vector<std::string> include{};
    std::vector<std::string> cxx_flags{};
    std::vector<std::string> device_flags{};
    std::vector<std::string> archs{};
    std::vector<const DependencyRow*> dependencies{};
    Reach reach{};
};

/// The lock's answer to one requirement.
struct Pinned {
    Requirement requirement{};
    std::string id{};
    /// Digest over all entries that satisfy it; "" when there is none.
    std::string digest{};
};

/// Makes the distinct TUs of a plan. One for the whole of make(): equal requests give the TU that
/// is there already.
class TuBuilder {
public:
    TuBuilder(const PlanInput& input, Diagnostics& diagnostics);

    /// Jobs of a variant's backend with its toolkit, made once for all variants that share them;
    /// mistakes are reported once.
    [[nodiscard]] const std::vector<Job>& jobs_for(const ChosenVariant& variant);
    /// The TU of a job in a variant.
    [[nodiscard]] const Tu&
    tu_for(const Job& job, const ChosenVariant& variant, const std::string& ops_id);
    /// The lock's answer, looked up once.
    [[nodiscard]] const Pinned& pinned(const Requirement& requirement, const Platform& platform);

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
    [[nodiscard]] std::vector<std::string> include_dirs(const config::Strings& list);
    [[nodiscard]] std::vector<const DependencyRow*> dependency_rows(const config::Section& section);
    [[nodiscard]] Context context_for(const Job& job, const ChosenVariant& variant) const;
    [[nodiscard]] std::vector<std::string>
    command_for(const Job& job, const Context& context, const std::string& ops_id) const;
    [[nodiscard]] Tu make_tu(const Job& job, const Context& context, const std::string& ops_id);

    using JobsKey = std::tuple<backend::FrameworkId, BackendId, Version>;
    using TuKey = std::tuple<const Job*, Platform, backend::FrameworkId, Version>;
    using PinnedKey = std::pair<Platform, Requirement>;

    const PlanInput& input_;
    Diagnostics& diagnostics_;
    IncludeGraph graph_;
    std::map<JobsKey, std::vector<Job>> jobs_;
    std::map<TuKey, const Tu*> by_request_;
    std::map<std::string, const Tu*, std::less<>> by_id_;
    std::deque<Tu> tus_;
    std::map<PinnedKey, Pinned> pinned_;
    std::set<Span> reported_;
};

/// Path below the source root without "./" and a final '/', "" for the root itself; nothing when it
/// leaves the root.
[[nodiscard]] std::optional<std::string> source_path(std::string_view text);

/// Requirements of a variant, sorted, each once: host, python, headers, toolkit, dependencies.
[[nodiscard]] std::vector<Requirement> requirements_of(const config::Config& config,
                                                       const SupportMatrix& matrix,
                                                       const ChosenVariant& variant);

} // namespace kb::plan
