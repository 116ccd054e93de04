// SPDX-License-Identifier: Apache-2.0
#pragma once
// A hub in memory for tests of this folder: an HttpClient that answers by itself and can fail at
// any request.
#include "http/client.hpp"
#include "hub/messages.hpp"
#include "hub/tree.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::upload::test {

class FakeHub final : public http::HttpClient {
public:
    struct File {
        std::string content{};
        bool lfs = false;
    };

    using Files = std::map<RelPath, File>;

    /// What a test does to request number `n` (from 1): an answer instead of handling it.
    using Before =
        std::function<std::optional<Result<http::Response>>(std::size_t n, const http::Request&)>;
    /// What becomes of the answer after it was handled.
    using After = std::function<Result<http::Response>(
        std::size_t n, const http::Request&, http::Response handled)>;

    Result<http::Response> send(const http::Request& request) override;

    /// A commit by somebody else on top of a branch.
    hub::GitOid commit(const std::string& branch, Files files, const std::string& title);
    [[nodiscard]] const Files& files(const std::string& branch) const;
    [[nodiscard]] std::size_t count(std::string_view part_of_line) const;

    bool repo_exists = true;
    bool multipart = false;
    std::uint64_t part_size = 10;
    std::uint64_t lfs_from = 20; ///< Files of this size and more go through LFS.
    std::size_t page_size = 1000;
    std::string ignored_path{};
    Before before{};
    After after{};
    /// "POST /api/kernels/..." of each request, in order.
    std::vector<std::string> log{};
    std::map<std::string, hub::GitOid> branches{};
    std::map<std::string, hub::GitOid> pull_requests{};
    std::map<std::string, Files> commits{};
    std::map<std::string, std::string> titles{};
    std::map<std::string, std::string> lfs{}; ///< sha256 -> content
    std::map<std::string, std::map<std::uint64_t, std::string>> parts{};

private:
    http::Response handle(const http::Request& request, const std::string& body);
    http::Response handle_repo(const http::Request& request, const std::string& body);
    [[nodiscard]] http::Response refs(bool with_pull_requests) const;
    [[nodiscard]] http::Response tree(const std::string& commit, const std::string& query) const;
    http::Response make_branch(const std::string& name);
    [[nodiscard]] http::Response preupload(const std::string& body) const;
    [[nodiscard]] http::Response batch(const std::string& body) const;
    http::Response put(const std::string& path, const std::string& body);
    http::Response complete(const std::string& oid, const std::string& body);
    http::Response
    take_commit(const std::string& branch, const std::string& body, bool as_pull_request);
    hub::GitOid add_commit(Files files, const std::string& title);

    std::mutex mutex_;
};

} // namespace kb::upload::test
