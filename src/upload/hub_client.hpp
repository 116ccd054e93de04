// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http/retry.hpp"
#include "hub/commit_stream.hpp"
#include "hub/lfs.hpp"
#include "hub/messages.hpp"
#include "hub/repo_id.hpp"
#include "hub/status.hpp"
#include "upload/remote_tree.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::upload {

/// Where the user puts a token, for advice: HF_TOKEN and its like, or --token-file.
enum class TokenPlace : std::uint8_t { environment, file };

/// The calls that an upload makes, typed; every url is built from the endpoint. An answer that is
/// no success becomes an Error whose text says what it means here and what to do: `denied` (401,
/// 403), `not_found`, `transient` (429, 5xx after all retries), else `corrupt`.
class HubClient {
public:
    HubClient(const http::Retrier& retrier,
              http::Url endpoint,
              http::Secret token,
              hub::RepoId repo,
              TokenPlace token_place = TokenPlace::environment)
        : retrier_{&retrier},
          endpoint_{std::move(endpoint)},
          token_{std::move(token)},
          repo_{std::move(repo)},
          token_place_{token_place} {}

    [[nodiscard]] const hub::RepoId& repo() const { return repo_; }

    [[nodiscard]] const http::Url& endpoint() const { return endpoint_; }

    [[nodiscard]] const http::Retrier& retrier() const { return *retrier_; }

    [[nodiscard]] bool has_token() const { return !token_.empty(); }

    /// Where a browser finds the repository.
    [[nodiscard]] http::Url web_url(std::string_view tail) const;

    /// Nothing: there is no such repository (or none that the token may see).
    [[nodiscard]] Result<std::optional<hub::Refs>> read_refs() const;
    [[nodiscard]] Result<hub::Refs> read_refs_with_pull_requests() const;
    /// All files of a commit, over all pages.
    [[nodiscard]] Result<RemoteTree> read_tree(const hub::GitOid& commit) const;
    /// Title and author of a commit, for messages; "" when the server does not say.
    [[nodiscard]] std::string describe_commit(const hub::GitOid& commit) const;

    /// Existing is success.
    [[nodiscard]] Result<void> create_repo(hub::Visibility visibility) const;
    /// False: it exists already.
    [[nodiscard]] Result<bool> create_branch(const std::string& branch) const;
    [[nodiscard]] Result<hub::PreuploadAnswer> preupload(const std::string& revision,
                                                         const hub::Preupload& request) const;
    [[nodiscard]] Result<hub::LfsBatchAnswer> lfs_batch(const hub::LfsBatchRequest& request) const;
    /// With the token when the address has the endpoint's origin.
    [[nodiscard]] Result<void> lfs_verify(const hub::LfsAction& verify,
                                          const hub::LfsObject& object) const;
    /// ONE send, never repeated: any status is a value, an Error means that the answer is lost.
    [[nodiscard]] Result<http::Response>
    post_commit(const std::string& revision, std::string body, std::string_view query) const;

    /// The Error that an answer without success means; `doing`: "creating branch 'v1'".
    [[nodiscard]] Error explain(const http::Response& response, std::string_view doing) const;

private:
    [[nodiscard]] http::Request request(http::Method method, const http::Url& url) const;
    [[nodiscard]] Result<http::Response>
    send_json(http::Method method, std::string_view path, const document::Node& body) const;

    const http::Retrier* retrier_;
    http::Url endpoint_;
    http::Secret token_;
    hub::RepoId repo_;
    TokenPlace token_place_;
};

/// What a failed call means to a publisher, a text for each of 401, 403, 404, 409, 412, 413, 429
/// and 507; `repo` as "owner/name", `has_token` decides the advice for 401.
enum class HasToken : std::uint8_t { no, yes };
[[nodiscard]] Error explain_status(const hub::HubStatus& status,
                                   std::string_view doing,
                                   HasToken has_token,
                                   TokenPlace place = TokenPlace::environment);

} // namespace kb::upload
