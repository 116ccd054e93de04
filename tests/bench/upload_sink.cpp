// SPDX-License-Identifier: Apache-2.0
// upload_sink ENDPOINT_FILE: a hub that remembers names and throws bytes away, so that a bench of
// uploading clients measures the clients: no digest is computed and nothing is written. Not a
// registry: any client may do anything, and only the calls of an upload are answered.
#include "document/json.hpp"
#include "http/server.hpp"
#include "hub/commit_stream.hpp"
#include "hub/lfs.hpp"
#include "hub/messages.hpp"
#include "hub/tree.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

using namespace kb;
using document::Node;
using http::ServerRequest;
using http::ServerResponse;

using Tree = std::map<RelPath, hub::TreeEntry>;

struct Repo {
    std::map<std::string, hub::GitOid> branches{};
    std::map<std::string, Tree> commits{};
};

ServerResponse answer(int status, const Node& body) {
    ServerResponse response{.status = status};
    response.headers.add("Content-Type", "application/json");
    response.body = document::write_json(body, {.indent = 0, .final_newline = false});
    return response;
}

ServerResponse failure(int status, const std::string& text) {
    ServerResponse response = answer(status, Node::table({{"error", text}}));
    response.headers.add("X-Error-Message", text);
    return response;
}

/// Applies a commit to a tree; the ids are git's.
class Applier final : public hub::CommitSink {
public:
    explicit Applier(Tree& tree) : tree_{&tree} {}

    Result<void> on_header(hub::CommitHeader /*header*/) override { return {}; }

    Result<void> on_content(Bytes bytes) override {
        content_ += as_text(bytes);
        return {};
    }

    Result<void> on_content_restart() override {
        content_.clear();
        return {};
    }

    Result<void> on_operation(hub::CommitOp op) override {
        if (const auto* file = std::get_if<hub::FileOp>(&op)) {
            (*tree_)[file->path] = {.oid = hub::git_id(hub::GitKind::blob, content_),
                                    .size = content_.size(),
                                    .path = file->path};
            content_.clear();
        } else if (const auto* large = std::get_if<hub::LfsFileOp>(&op)) {
            const hub::LfsPointer pointer{.oid = large->oid, .size = large->size.value_or(0)};
            (*tree_)[large->path] = {.oid = hub::pointer_id(pointer),
                                     .size = pointer.size,
                                     .path = large->path,
                                     .lfs = pointer};
        } else if (const auto* gone = std::get_if<hub::DeletedFileOp>(&op)) {
            tree_->erase(gone->path);
        }
        return {};
    }

private:
    Tree* tree_;
    std::string content_{};
};

class Sink final : public http::RequestHandler {
public:
    std::string endpoint{};

    ServerResponse handle(ServerRequest& request) override {
        if (request.method == "PUT") {
            return swallow(request);
        }
        const Result<std::string> body = http::read_all(*request.body, 256UL << 20U);
        if (!body) {
            return failure(400, body.error().to_text());
        }
        const std::lock_guard lock{mutex_};
        if (request.path == "/api/repos/create") {
            return create(*body);
        }
        if (request.path.ends_with(".git/info/lfs/objects/batch")) {
            return batch(*body);
        }
        return in_repo(request, *body);
    }

private:
    static ServerResponse swallow(ServerRequest& request) {
        thread_local std::vector<std::byte> block(1UL << 20U);
        for (;;) {
            const Result<std::size_t> n = request.body->read(block);
            if (!n || *n == 0) {
                return n ? answer(200, Node::table()) : failure(400, n.error().to_text());
            }
        }
    }

    ServerResponse create(const std::string& body) {
        const auto json = document::parse_json(body, {.name = "request"});
        const auto wanted =
            json ? hub::parse_create_repo(*json) : Result<hub::CreateRepo>{json.error()};
        if (!wanted) {
            return failure(400, wanted.error().to_text());
        }
        const std::string id = wanted->organization.value_or("alice") + "/" + wanted->name;
        Repo& repo = repos_[id];
        repo.branches["main"] = add(repo, {});
        return answer(
            200, Node::table({{"url", endpoint + "/kernels/" + id}, {"name", id}, {"id", id}}));
    }

    ServerResponse batch(const std::string& body) const {
        const auto json = document::parse_json(body, {.name = "request"});
        const auto wanted =
            json ? hub::parse_batch_request(*json) : Result<hub::LfsBatchRequest>{json.error()};
        if (!wanted) {
            return failure(400, wanted.error().to_text());
        }
        hub::LfsBatchAnswer out{.transfer = "basic"};
        for (const hub::LfsObject& object : wanted->objects) {
            out.objects.push_back(
                {.object = object,
                 .upload =
                     hub::LfsAction{.href = fmt::format("{}/put/{}", endpoint, object.oid.hex())}});
        }
        return answer(200, hub::to_json(out));
    }

    // /api/kernels/owner/name/what[/argument]
    ServerResponse in_repo(const ServerRequest& request, const std::string& body) {
        std::vector<std::string> words;
        for (std::size_t at = 1; at < request.path.size();) {
            const std::size_t end = std::min(request.path.find('/', at), request.path.size());
            words.push_back(request.path.substr(at, end - at));
            at = end + 1;
        }
        if (words.size() < 5 || !repos_.contains(words[2] + "/" + words[3])) {
            return failure(404, "Repository not found");
        }
        const std::string id = words[2] + "/" + words[3];
        Repo& repo = repos_[id];
        const std::string argument = words.size() > 5 ? words[5] : "";
        if (words[4] == "refs") {
            return refs(repo);
        }
        if (words[4] == "tree") {
            return tree(repo, argument);
        }
        if (words[4] == "branch") {
            repo.branches.emplace(argument, repo.branches["main"]);
            return answer(200, Node::table());
        }
        if (words[4] == "preupload") {
            return preupload(body);
        }
        return words[4] == "commit" ? commit(repo, id, argument, body)
                                    : failure(404, "no such call");
    }

    static ServerResponse refs(const Repo& repo) {
        hub::Refs all;
        for (const auto& [name, target] : repo.branches) {
            all.branches.push_back({.name = name, .ref = "refs/heads/" + name, .target = target});
        }
        return answer(200, hub::to_json(all));
    }

    static ServerResponse tree(const Repo& repo, const std::string& commit) {
        const auto found = repo.commits.find(commit);
        if (found == repo.commits.end()) {
            return failure(404, "no such revision");
        }
        Node rows = Node::array();
        for (const auto& [path, entry] : found->second) {
            rows.push(hub::to_json(entry));
        }
        return answer(200, rows);
    }

    static ServerResponse preupload(const std::string& body) {
        const auto json = document::parse_json(body, {.name = "request"});
        const auto wanted =
            json ? hub::parse_preupload(*json) : Result<hub::Preupload>{json.error()};
        if (!wanted) {
            return failure(400, wanted.error().to_text());
        }
        hub::PreuploadAnswer out;
        for (const hub::PreuploadFile& file : wanted->files) {
            out.files.push_back({.path = file.path,
                                 .mode = file.size > (1UL << 20U) ? hub::UploadMode::lfs
                                                                  : hub::UploadMode::regular});
        }
        return answer(200, hub::to_json(out));
    }

    hub::GitOid add(Repo& repo, Tree tree) {
        const hub::GitOid id = digest::sha1(fmt::format("commit {}", ++commits_));
        repo.commits[id.hex()] = std::move(tree);
        return id;
    }

    ServerResponse commit(Repo& repo,
                          const std::string& name,
                          const std::string& branch,
                          const std::string& body) {
        if (!repo.branches.contains(branch)) {
            return failure(404, "no such branch");
        }
        Tree tree = repo.commits[repo.branches[branch].hex()];
        Applier applier{tree};
        hub::CommitParser parser{applier};
        Result<void> taken = parser.feed(as_bytes(body));
        if (taken) {
            taken = parser.finish();
        }
        if (!taken) {
            return failure(400, taken.error().to_text());
        }
        const hub::GitOid id = add(repo, std::move(tree));
        repo.branches[branch] = id;
        return answer(
            200,
            hub::to_json(hub::CommitAnswer{
                .commit = id,
                .url = fmt::format("{}/kernels/{}/commit/{}", endpoint, name, id.hex())}));
    }

    std::mutex mutex_;
    std::map<std::string, Repo> repos_;
    std::size_t commits_ = 0;
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: upload_sink ENDPOINT_FILE\n", stderr);
        return 2;
    }
    auto server = http::HttpServer::listen({});
    if (!server) {
        std::fputs((server.error().to_text() + "\n").c_str(), stderr);
        return 1;
    }
    Sink sink;
    sink.endpoint = (*server)->endpoint();
    const std::string told = argv[1];
    std::ofstream{told + ".tmp"} << sink.endpoint;
    if (std::rename((told + ".tmp").c_str(), told.c_str()) != 0) {
        return 1;
    }
    return (*server)->run(sink) ? 0 : 1;
}
