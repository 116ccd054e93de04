// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "document/json.hpp"
#include "registry/app.hpp"
#include "registry/root.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::registry::test {

/// Stands still until it is moved.
class FixedClock : public sys::Clock {
public:
    std::int64_t unix_seconds() override { return seconds; }

    std::chrono::steady_clock::time_point now() override { return {}; }

    bool sleep(std::chrono::milliseconds /*duration*/) override { return true; }

    std::int64_t seconds = 1'800'000'000;
};

class MemoryBody : public http::BodyReader {
public:
    explicit MemoryBody(std::string text) : text_{std::move(text)}, length_{text_.size()} {}

    Result<std::size_t> read(std::span<std::byte> out) override {
        const std::size_t n = std::min(out.size(), text_.size() - at_);
        std::ranges::copy(as_bytes(text_).subspan(at_, n), out.begin());
        at_ += n;
        return n;
    }

    [[nodiscard]] std::optional<std::uint64_t> length() const override { return length_; }

private:
    std::string text_;
    std::uint64_t length_;
    std::size_t at_ = 0;
};

struct Asked {
    int status = 0;
    http::Headers headers{};
    std::string body{};

    [[nodiscard]] std::string header(std::string_view name) const { return headers.text_or(name); }

    [[nodiscard]] document::Node json() const {
        const auto parsed = document::parse_json(body, {});
        REQUIRE(parsed.has_value());
        return *parsed;
    }
};

/// A registry in a temporary directory, asked without a socket. Tokens by name: "alice" (write in
/// her own namespace and acme), "reader" (read in acme), "bob" (write in his own), "root" (admin).
class Fixture {
public:
    explicit Fixture(Settings settings = {}) : settings_{std::move(settings)} {
        REQUIRE(init_root(fs_, root()).has_value());
        open();
        token("alice", {.user = "alice", .namespaces = {"alice", "acme"}});
        token("reader", {.user = "carol", .scope = Scope::read, .namespaces = {"acme"}});
        token("bob", {.user = "bob"});
        token("root", {.user = "root", .scope = Scope::admin});
    }

    void close() {
        app_.reset();
        service_.reset();
        opened_ = {};
    }

    void open() {
        close();
        auto opened = open_root(fs_, root(), RootUse::serve);
        REQUIRE(opened.has_value());
        opened_ = std::move(opened).value();
        service_ = std::make_unique<Service>(
            ServiceParts{.meta = *opened_.meta,
                         .blobs = *opened_.blobs,
                         .fs = fs_,
                         .clock = clock,
                         .settings = settings_,
                         .temporary = RootPaths{root()}.temporary(),
                         .parts = RootPaths{root()}.parts(),
                         .xorbs = RootPaths{root()}.xorbs(),
                         .signing_key = opened_.meta->signing_key().value()});
        app_ = std::make_unique<App>(
            *service_,
            AppOptions{.base_url = "http://reg", .on_failure = [this](const std::string& text) {
                           failures.push_back(text);
                       }});
    }

    /// `who` names a token; "" sends none, "Bearer x" is sent as it is.
    Asked ask(std::string_view method,
              std::string_view target,
              std::string body = {},
              std::string_view who = "alice",
              http::Headers headers = {}) {
        const std::size_t mark = target.find('?');
        http::ServerRequest request{
            .method = std::string{method},
            .path = std::string{target.substr(0, mark)},
            .query = mark == std::string_view::npos ? "" : std::string{target.substr(mark + 1)},
            .headers = std::move(headers)};
        if (const auto found = tokens_.find(std::string{who}); found != tokens_.end()) {
            request.headers.add("Authorization", "Bearer " + found->second);
        } else if (!who.empty()) {
            request.headers.add("Authorization", std::string{who});
        }
        MemoryBody reader{std::move(body)};
        request.body = &reader;
        return read(app_->handle(request));
    }

    void make_repo(std::string_view name = "acme/relu", std::string_view visibility = "public") {
        const std::size_t slash = name.find('/');
        const Asked made = ask("POST",
                               "/api/repos/create",
                               fmt::format(R"({{"type":"kernel","organization":"{}","name":"{}",)"
                                           R"("visibility":"{}"}})",
                                           name.substr(0, slash),
                                           name.substr(slash + 1),
                                           visibility));
        REQUIRE(made.status == 200);
    }

    /// Lines after a header with that title.
    Asked commit(std::string_view lines,
                 std::string_view revision = "main",
                 std::string_view who = "alice",
                 std::optional<std::string> parent = {}) {
        const std::string header = hub::write_line(hub::CommitHeader{
            .summary = "change", .description = "", .parent_commit = std::move(parent)});
        return ask("POST",
                   fmt::format("/api/kernels/acme/relu/commit/{}", revision),
                   header + std::string{lines},
                   who);
    }

    static std::string file(std::string_view path, std::string_view content) {
        return hub::write_line(hub::FileOp{.path = RelPath::literal(path)}, content);
    }

    std::string head(std::string_view branch = "main") {
        return ask("GET", fmt::format("/api/kernels/acme/relu/revision/{}", branch))
            .json()
            .text_or("sha");
    }

    /// Uploads an object the way a client does; its status.
    int put_object(std::string_view content, std::string_view claimed = {}) {
        const digest::Digest oid = digest::sha256(claimed.empty() ? content : claimed);
        const Asked batch = ask("POST",
                                "/kernels/acme/relu.git/info/lfs/objects/batch",
                                fmt::format(R"({{"operation":"upload","transfers":["basic"],)"
                                            R"("objects":[{{"oid":"{}","size":{}}}]}})",
                                            oid.hex(),
                                            content.size()));
        REQUIRE(batch.status == 200);
        const document::Node answer = batch.json();
        const document::Node* actions = answer.find("objects")->as_array().at(0).find("actions");
        REQUIRE(actions != nullptr);
        const std::string href = actions->find("upload")->text_or("href");
        REQUIRE(href.starts_with("http://reg/"));
        return ask("PUT", href.substr(10), std::string{content}, "").status;
    }

    [[nodiscard]] sys::Path root() const { return dir_.path() / "registry"; }

    [[nodiscard]] MetaStore& meta() { return *opened_.meta; }

    [[nodiscard]] Service& service() { return *service_; }

    [[nodiscard]] store::BlobStore& blobs() { return *opened_.blobs; }

    void token(const std::string& name, const NewToken& token) {
        tokens_[name] = create_token(*opened_.meta, token, clock.seconds).value();
    }

    FixedClock clock{};
    std::vector<std::string> failures{};

private:
    static Asked read(http::ServerResponse response) {
        Asked asked{.status = response.status, .headers = std::move(response.headers)};
        if (auto* text = std::get_if<std::string>(&response.body)) {
            asked.body = std::move(*text);
        } else if (auto* file = std::get_if<http::FileBody>(&response.body)) {
            const std::string path = fmt::format("/proc/self/fd/{}", file->file.get());
            asked.body = kb::test::read_text(path).substr(file->offset, file->length);
        }
        return asked;
    }

    kb::test::TempDir dir_;
    sys::FileSystem& fs_ = sys::real_file_system();
    Settings settings_;
    OpenedRoot opened_{};
    std::unique_ptr<Service> service_;
    std::unique_ptr<App> app_;
    std::map<std::string, std::string> tokens_;
};

} // namespace kb::registry::test
