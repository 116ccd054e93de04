// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"
#include "document/node.hpp"
#include "hub/git_object.hpp"
#include "hub/repo_id.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::hub {

// The small JSON messages. to_json() and parse_x() are each other's inverse for what both ends use;
// parsers skip unknown members and say which one is wrong (`corrupt`).

enum class Visibility : std::uint8_t { public_, private_ };

/// POST /api/repos/create, and with the members that identify the repository also
/// DELETE /api/repos/delete.
struct CreateRepo {
    RepoType type = RepoType::models;
    std::string name{};
    /// Absent: the caller's own namespace.
    std::optional<std::string> organization{};
    Visibility visibility = Visibility::public_;

    bool operator==(const CreateRepo&) const = default;
};

[[nodiscard]] document::Node to_json(const CreateRepo& request);
[[nodiscard]] Result<CreateRepo> parse_create_repo(const document::Node& json);

struct Ref {
    /// "main"; for a pull request the full name.
    std::string name{};
    /// "refs/heads/main"
    std::string ref{};
    GitOid target{};

    bool operator==(const Ref&) const = default;
};

/// GET {api}/refs
struct Refs {
    std::vector<Ref> branches{};
    std::vector<Ref> tags{};
    /// Only when asked for by include_prs.
    std::optional<std::vector<Ref>> pull_requests{};

    bool operator==(const Refs&) const = default;

    [[nodiscard]] const Ref* branch(std::string_view name) const;
};

[[nodiscard]] document::Node to_json(const Refs& refs);
[[nodiscard]] Result<Refs> parse_refs(const document::Node& json);

enum class UploadMode : std::uint8_t { lfs, regular };

struct PreuploadFile {
    RelPath path = RelPath::literal("unnamed");
    std::uint64_t size = 0;
    /// First bytes of the file, at most 512.
    std::string sample{};

    bool operator==(const PreuploadFile&) const = default;
};

/// POST {api}/preupload/{rev}
struct Preupload {
    std::vector<PreuploadFile> files{};

    bool operator==(const Preupload&) const = default;
};

struct PreuploadVerdict {
    RelPath path = RelPath::literal("unnamed");
    UploadMode mode = UploadMode::regular;
    bool should_ignore = false;
    /// What stands at this path now: sha256 of an LFS file, git blob id of another.
    std::optional<std::string> remote_oid{};

    bool operator==(const PreuploadVerdict&) const = default;
};

struct PreuploadAnswer {
    std::vector<PreuploadVerdict> files{};

    bool operator==(const PreuploadAnswer&) const = default;
};

[[nodiscard]] document::Node to_json(const Preupload& request);
[[nodiscard]] document::Node to_json(const PreuploadAnswer& answer);
[[nodiscard]] Result<Preupload> parse_preupload(const document::Node& json);
[[nodiscard]] Result<PreuploadAnswer> parse_preupload_answer(const document::Node& json);

/// Answer to POST {api}/commit/{rev}
struct CommitAnswer {
    GitOid commit{};
    std::string url{};
    std::optional<std::string> pull_request_url{};

    bool operator==(const CommitAnswer&) const = default;
};

[[nodiscard]] document::Node to_json(const CommitAnswer& answer);
[[nodiscard]] Result<CommitAnswer> parse_commit_answer(const document::Node& json);

/// GET {api}/commits/{rev}
struct CommitInfo {
    GitOid id{};
    std::string title{};
    std::string message{};
    std::vector<std::string> authors{};
    /// Seconds since 1970.
    std::int64_t time = 0;

    bool operator==(const CommitInfo&) const = default;
};

[[nodiscard]] document::Node to_json(const CommitInfo& info);

/// GET /api/whoami-v2
struct WhoAmI {
    std::string name{};
    /// "read", "write" or "admin".
    std::string role{};
    /// Namespaces besides the user's own.
    std::vector<std::string> organizations{};

    bool operator==(const WhoAmI&) const = default;
};

[[nodiscard]] document::Node to_json(const WhoAmI& who);
[[nodiscard]] Result<WhoAmI> parse_whoami(const document::Node& json);

/// "2026-01-31T12:00:00.000Z"
[[nodiscard]] std::string iso_time(std::int64_t seconds_since_1970);

} // namespace kb::hub
