// SPDX-License-Identifier: Apache-2.0
#include "upload/fake_hub.hpp"

#include "base/text.hpp"
#include "document/json.hpp"
#include "hub/commit_stream.hpp"
#include "hub/lfs.hpp"
#include "hub/percent.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

namespace kb::upload::test {

namespace {

using document::Node;
using http::Response;

constexpr std::string_view kApi = "/api/kernels/acme/demo";
constexpr std::string_view kBase = "http://hub.test";

Response answer(int status, const Node& body, http::Headers headers = {}) {
    return {.status = status, .headers = std::move(headers), .body = document::write_json(body)};
}

Response failure(int status, const std::string& code, const std::string& message) {
    http::Headers headers;
    if (!code.empty()) {
        headers.add("X-Error-Code", code);
    }
    headers.add("X-Error-Message", message);
    return answer(status, Node::table({{"error", message}}), std::move(headers));
}

std::string body_text(const http::Body& body) {
    if (const auto* text = std::get_if<std::string>(&body)) {
        return *text;
    }
    if (const auto* slice = std::get_if<http::FileSlice>(&body)) {
        std::ifstream in{slice->path, std::ios::binary};
        std::string text(slice->length, '\0');
        in.seekg(static_cast<std::streamoff>(slice->offset));
        in.read(text.data(), static_cast<std::streamsize>(slice->length));
        return text;
    }
    return {};
}

hub::TreeEntry entry_of(const RelPath& path, const FakeHub::File& file) {
    hub::TreeEntry entry{.size = file.content.size(), .path = path};
    if (file.lfs) {
        entry.lfs =
            hub::LfsPointer{.oid = digest::sha256(file.content), .size = file.content.size()};
        entry.oid = hub::pointer_id(*entry.lfs);
    } else {
        entry.oid = hub::git_id(hub::GitKind::blob, file.content);
    }
    return entry;
}

/// Applies a commit stream to files; the error is what the registry answers.
class Applier final : public hub::CommitSink {
public:
    Applier(FakeHub::Files& files, const std::map<std::string, std::string>& lfs)
        : files_{&files}, lfs_{&lfs} {}

    Result<void> on_header(hub::CommitHeader value) override {
        header = std::move(value);
        return {};
    }

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
            (*files_)[file->path] = {.content = std::exchange(content_, {})};
        } else if (const auto* large = std::get_if<hub::LfsFileOp>(&op)) {
            const auto found = lfs_->find(large->oid.hex());
            if (found == lfs_->end()) {
                return Error{.message = "lfs object missing"};
            }
            (*files_)[large->path] = {.content = found->second, .lfs = true};
        } else if (const auto* gone = std::get_if<hub::DeletedFileOp>(&op)) {
            if (files_->erase(gone->path) == 0) {
                return Error{.message = "A file with this name doesn't exist"};
            }
        }
        return {};
    }

    hub::CommitHeader header{};

private:
    FakeHub::Files* files_;
    const std::map<std::string, std::string>* lfs_;
    std::string content_{};
};

Node parsed(const std::string& body) {
    auto json = document::parse_json(body, {.name = "request"});
    KB_ASSERT(json.has_value(), "the client sends JSON");
    return std::move(*json);
}

} // namespace

Result<Response> FakeHub::send(const http::Request& request) {
    std::size_t n = 0;
    {
        const std::lock_guard lock{mutex_};
        log.push_back(fmt::format("{} {}", http::to_text(request.method), request.url.path()));
        n = log.size();
    }
    if (before) {
        if (auto instead = before(n, request)) {
            return std::move(*instead);
        }
    }
    Response response;
    {
        const std::lock_guard lock{mutex_};
        response = handle(request, body_text(request.body));
    }
    return after ? after(n, request, std::move(response)) : Result<Response>{std::move(response)};
}

std::size_t FakeHub::count(std::string_view part_of_line) const {
    std::size_t n = 0;
    for (const std::string& line : log) {
        n += line.contains(part_of_line) ? 1U : 0U;
    }
    return n;
}

hub::GitOid FakeHub::add_commit(Files files, const std::string& title) {
    const hub::GitOid oid = digest::sha1(fmt::format("{} {}", commits.size(), title));
    commits[oid.hex()] = std::move(files);
    titles[oid.hex()] = title;
    return oid;
}

hub::GitOid FakeHub::commit(const std::string& branch, Files files, const std::string& title) {
    Files all = branches.contains(branch) ? commits[branches[branch].hex()] : Files{};
    for (auto& [path, file] : files) {
        all[path] = std::move(file);
    }
    return branches[branch] = add_commit(std::move(all), title);
}

const FakeHub::Files& FakeHub::files(const std::string& branch) const {
    return commits.at(branches.at(branch).hex());
}

Response FakeHub::handle(const http::Request& request, const std::string& body) {
    const std::string& path = request.url.path();
    if (path == "/api/repos/create") {
        if (repo_exists && branches.contains("main")) {
            return answer(409, Node::table({{"url", "http://hub.test/kernels/acme/demo"}}));
        }
        repo_exists = true;
        commit("main", {{RelPath::literal(".gitattributes"), {.content = "*.so\n"}}}, "initial");
        return answer(200, Node::table({{"url", "http://hub.test/kernels/acme/demo"}}));
    }
    if (path.starts_with("/_lfs/")) {
        return put(path.substr(6), body);
    }
    if (path.starts_with("/_complete/")) {
        return complete(path.substr(11), body);
    }
    if (path == "/_verify") {
        const auto object = hub::parse_lfs_object(parsed(body));
        return lfs.contains(object->oid.hex()) ? answer(200, Node::table())
                                               : failure(404, "", "no such object");
    }
    if (!repo_exists) {
        return failure(404, "RepoNotFound", "Repository not found");
    }
    if (path == "/kernels/acme/demo.git/info/lfs/objects/batch") {
        return batch(body);
    }
    return path.starts_with(kApi) ? handle_repo(request, body) : failure(404, "", "no such page");
}

Response FakeHub::handle_repo(const http::Request& request, const std::string& body) {
    const std::string rest = request.url.path().substr(kApi.size() + 1);
    const std::string op = rest.substr(0, rest.find('/'));
    const std::string arg =
        rest.size() > op.size() ? *hub::decode_percent(rest.substr(op.size() + 1)) : std::string{};
    if (op == "refs") {
        return refs(request.url.query().contains("include_prs"));
    }
    if (op == "tree") {
        return tree(arg, request.url.query());
    }
    if (op == "branch") {
        return make_branch(arg);
    }
    if (op == "preupload") {
        return preupload(body);
    }
    if (op == "commits") {
        Node author = Node::table({{"user", "bob"}});
        Node authors = Node::array();
        authors.push(std::move(author));
        Node rows = Node::array();
        rows.push(
            Node::table({{"id", arg}, {"title", titles[arg]}, {"authors", std::move(authors)}}));
        return answer(200, rows);
    }
    if (op == "commit") {
        return take_commit(arg, body, request.url.query().contains("create_pr"));
    }
    return failure(404, "", "no such call");
}

Response FakeHub::refs(bool with_pull_requests) const {
    hub::Refs all;
    for (const auto& [name, target] : branches) {
        all.branches.push_back({.name = name, .ref = "refs/heads/" + name, .target = target});
    }
    if (with_pull_requests) {
        all.pull_requests.emplace();
        for (const auto& [ref, target] : pull_requests) {
            all.pull_requests->push_back({.name = ref, .ref = ref, .target = target});
        }
    }
    return answer(200, hub::to_json(all));
}

Response FakeHub::tree(const std::string& commit, const std::string& query) const {
    const auto found = commits.find(commit);
    if (found == commits.end()) {
        return failure(404, "RevisionNotFound", "no such revision");
    }
    const std::size_t at = query.find("cursor=");
    const std::size_t first =
        at == std::string::npos ? 0 : std::strtoul(query.c_str() + at + 7, nullptr, 10);
    Node rows = Node::array();
    std::size_t i = 0;
    for (const auto& [path, file] : found->second) {
        if (i >= first && i < first + page_size) {
            rows.push(hub::to_json(entry_of(path, file)));
        }
        ++i;
    }
    http::Headers headers;
    if (first + page_size < i) {
        headers.add(
            "Link",
            hub::write_next_link(fmt::format(
                "{}{}/tree/{}?recursive=true&cursor={}", kBase, kApi, commit, first + page_size)));
    }
    return answer(200, rows, std::move(headers));
}

Response FakeHub::make_branch(const std::string& name) {
    if (branches.contains(name)) {
        return failure(409, "", "Reference already exists");
    }
    branches[name] = branches["main"];
    return answer(200, Node::table());
}

Response FakeHub::preupload(const std::string& body) const {
    hub::PreuploadAnswer out;
    const auto request = hub::parse_preupload(parsed(body));
    for (const hub::PreuploadFile& file : request->files) {
        out.files.push_back(
            {.path = file.path,
             .mode = file.size >= lfs_from ? hub::UploadMode::lfs : hub::UploadMode::regular,
             .should_ignore = file.path.text() == ignored_path});
    }
    return answer(200, hub::to_json(out));
}

Response FakeHub::batch(const std::string& body) const {
    hub::LfsBatchAnswer out{.transfer = multipart ? "multipart" : "basic"};
    const auto request = hub::parse_batch_request(parsed(body));
    for (const hub::LfsObject& object : request->objects) {
        hub::LfsBatchItem item{.object = object};
        const std::string oid = object.oid.hex();
        if (!lfs.contains(oid)) {
            item.upload = hub::LfsAction{.href = fmt::format("{}/_lfs/{}", kBase, oid),
                                         .header = {{"X-Sig", "s"}}};
            item.verify = hub::LfsAction{.href = fmt::format("{}/_verify", kBase)};
            if (multipart && object.size > part_size) {
                hub::LfsMultipart plan{.chunk_size = part_size};
                for (std::uint64_t i = 1; i <= hub::part_count(object.size, part_size); ++i) {
                    plan.part_urls.push_back(fmt::format("{}/_lfs/{}/{}", kBase, oid, i));
                }
                item.upload = hub::LfsAction{.href = fmt::format("{}/_complete/{}", kBase, oid),
                                             .header = hub::to_header(plan)};
            }
        }
        out.objects.push_back(std::move(item));
    }
    return answer(200, hub::to_json(out));
}

Response FakeHub::put(const std::string& path, const std::string& body) {
    const std::size_t slash = path.find('/');
    if (slash != std::string::npos) {
        parts[path.substr(0, slash)][*parse_unsigned(path.substr(slash + 1))] = body;
        return {.status = 200, .headers = {{"ETag", digest::sha1(body).hex()}}};
    }
    if (digest::sha256(body).hex() != path) {
        return failure(422, "", "sha256 mismatch");
    }
    lfs[path] = body;
    return answer(200, Node::table());
}

Response FakeHub::complete(const std::string& oid, const std::string& body) {
    const auto completion = hub::parse_completion(parsed(body));
    std::string content;
    for (const hub::LfsPart& part : completion->parts) {
        const auto found = parts[oid].find(part.number);
        if (found == parts[oid].end() || digest::sha1(found->second).hex() != part.etag) {
            return failure(400, "", "no such part");
        }
        content += found->second;
    }
    return put(oid, content);
}

Response
FakeHub::take_commit(const std::string& branch, const std::string& body, bool as_pull_request) {
    if (!branches.contains(branch)) {
        return failure(404, "RevisionNotFound", "no such branch");
    }
    Files files = commits[branches[branch].hex()];
    Applier applier{files, lfs};
    hub::CommitParser parser{applier};
    auto taken = parser.feed(as_bytes(body));
    if (taken) {
        taken = parser.finish();
    }
    if (!taken) {
        return failure(400, "", taken.error().to_text());
    }
    const auto& parent = applier.header.parent_commit;
    if (parent && !branches[branch].hex().starts_with(*parent)) {
        return failure(412, "", "the branch moved on");
    }
    const hub::GitOid oid = add_commit(std::move(files), applier.header.summary);
    hub::CommitAnswer out{.commit = oid,
                          .url = fmt::format("{}/kernels/acme/demo/commit/{}", kBase, oid.hex())};
    if (as_pull_request) {
        const std::size_t number = pull_requests.size() + 1;
        pull_requests[fmt::format("refs/pr/{}", number)] = oid;
        out.pull_request_url = fmt::format("{}/kernels/acme/demo/discussions/{}", kBase, number);
    } else {
        branches[branch] = oid;
    }
    return answer(200, hub::to_json(out));
}

} // namespace kb::upload::test
