// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "hub/messages.hpp"
#include "hub/repo_id.hpp"
#include "hub/tree.hpp"
#include "registry/service.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kb::registry {

/// Takes the bytes of one file in order. What arrived stays when an attempt breaks off.
class MirrorSink {
public:
    virtual ~MirrorSink() = default;
    /// How many bytes are here: where a source goes on.
    [[nodiscard]] virtual std::uint64_t position() const = 0;
    /// The source can only begin anew.
    virtual Result<void> restart() = 0;
    virtual Result<void> write(Bytes bytes) = 0;
};

/// Another registry, as a reader sees it. Nothing it says is believed: ids and digests are computed
/// from what arrives. Usable from several threads.
class MirrorSource {
public:
    virtual ~MirrorSource() = default;
    /// Nothing: there is no such repository.
    virtual Result<std::optional<hub::Refs>> read_refs() = 0;
    /// All files of a commit.
    virtual Result<std::vector<hub::TreeEntry>> read_tree(const hub::GitOid& commit) = 0;
    /// From sink.position() on, with all retries there are to be.
    virtual Result<void>
    fetch(const hub::GitOid& commit, const RelPath& path, MirrorSink& sink) = 0;
};

/// Whether a version branch that holds other content here than there may change.
enum class MirrorReplace : std::uint8_t { no, yes };

struct MirrorOptions {
    hub::RepoId repo;
    /// What the commits name as their origin, without secrets.
    std::string origin{};
    /// Branches to take; none: main and all v<number>.
    std::vector<std::string> branches{};
    /// Only build/<variant>/ of these; none: all.
    std::vector<std::string> variants{};
    MirrorReplace replace = MirrorReplace::no;
    hub::Visibility visibility = hub::Visibility::public_;
    unsigned streams = 4;
    /// One line for people about what happens now; may be empty.
    std::function<void(const std::string&)> note{};
};

struct MirroredBranch {
    std::string name{};
    hub::GitOid source{};
    /// The head here that now holds it.
    hub::GitOid commit{};
    std::size_t added = 0;
    std::size_t unchanged = 0;
};

struct MirrorReport {
    std::vector<MirroredBranch> branches{};
    std::uint64_t bytes_fetched = 0;
    /// Of an earlier run that broke off, or of another repository here.
    std::uint64_t bytes_here = 0;
};

/// Takes branches of a repository over as one commit each; the repository and its branches are made
/// when they are missing. Files are added or changed, never deleted. A file counts when it has the
/// size and the id that the source's tree gives it; a variant that is asked for and is on none of
/// the branches is `not_found`. What arrived stays for the next run. `parts` are those of
/// `service`.
[[nodiscard]] Result<MirrorReport> mirror_repo(Service& service,
                                               const ServiceParts& parts,
                                               MirrorSource& source,
                                               const MirrorOptions& options);

/// The same into a registry that is not being served, with its own settings; `denied` when it is
/// served.
[[nodiscard]] Result<MirrorReport> mirror_into_root(const sys::Path& root,
                                                    sys::FileSystem& fs,
                                                    sys::Clock& clock,
                                                    MirrorSource& source,
                                                    const MirrorOptions& options);

} // namespace kb::registry
