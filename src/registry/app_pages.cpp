// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "document/json.hpp"
#include "registry/app.hpp"
#include "registry/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace kb::registry {

using document::Node;

namespace {

constexpr std::size_t kMostFiles = 2000;
constexpr std::size_t kMostVariants = 500;
constexpr std::size_t kHistory = 20;
constexpr std::uint64_t kMostText = 1UL << 20U;

http::ServerResponse html_response(std::string html) {
    return {.headers = {{"Content-Type", "text/html; charset=utf-8"},
                        {"Content-Security-Policy", page_policy()},
                        {"Referrer-Policy", "no-referrer"},
                        {"Cache-Control", "no-cache"}},
            .body = std::move(html)};
}

std::string source_of(const Node& metadata) {
    const Node* provenance = metadata.find("provenance");
    const Node* kernel = provenance != nullptr ? provenance->find("kernel") : nullptr;
    if (kernel == nullptr) {
        return "";
    }
    const std::string commit = kernel->text_or("commit", kernel->text_or("sha"));
    const Node* dirty = kernel->find("dirty");
    const bool is_dirty = dirty != nullptr && dirty->is(Node::Kind::boolean) && dirty->as_bool();
    return commit + (is_dirty && !commit.empty() ? " with uncommitted changes" : "");
}

/// What is not as it should be in a metadata.json is left out: the page shows what is there.
void take_metadata(const Node& metadata, PageVariant& variant, std::optional<PageKernel>& kernel) {
    const Node* backend = metadata.find("backend");
    const Node* archs = backend != nullptr ? backend->find("archs") : nullptr;
    if (archs != nullptr && archs->is_array()) {
        for (const Node& arch : archs->as_array()) {
            if (arch.is_string()) {
                variant.archs.push_back(arch.as_string());
            }
        }
    }
    variant.source = source_of(metadata);
    variant.has_digest = metadata.find("digest") != nullptr;
    if (!kernel) {
        const Node* version = metadata.find("version");
        kernel = PageKernel{.version = version != nullptr && version->is_unsigned()
                                           ? fmt::format("{}", version->as_unsigned())
                                           : "",
                            .license = metadata.text_or("license"),
                            .upstream = metadata.text_or("upstream")};
    }
}

/// The variant that a path belongs to, and the rest of it.
std::optional<std::pair<std::string, std::string>> split_variant(const std::string& path) {
    constexpr std::string_view kBuild = "build/";
    const std::size_t slash = path.find('/', kBuild.size());
    if (!path.starts_with(kBuild) || slash == std::string::npos) {
        return std::nullopt;
    }
    return std::pair{path.substr(kBuild.size(), slash - kBuild.size()), path.substr(slash + 1)};
}

/// "" when it is not there or too long to be shown.
Reply<std::string> text_of(Service& service,
                           const RepoRow& repo,
                           const ResolvedRevision& at,
                           const std::string& path) {
    KB_TRY(const RelPath where, RelPath::parse(path));
    Reply<FileContent> content = service.open_file(repo, at, where);
    if (!content) {
        return content.error().http == 404 ? Reply<std::string>{std::string{}}
                                           : Reply<std::string>{content.error()};
    }
    if (auto* text = std::get_if<std::string>(&content->bytes)) {
        return std::move(*text);
    }
    std::string text;
    if (content->file.size <= kMostText) {
        const auto& file = std::get<std::unique_ptr<sys::InputFile>>(content->bytes);
        text.resize(content->file.size);
        KB_TRY(const std::size_t n, file->read_at(0, text.data(), text.size()));
        text.resize(n);
    }
    return text;
}

/// Collects what a page shows; a thing that cannot be read is missing from it.
class PageMaker {
public:
    PageMaker(Service& service, const RepoRow& repo, const ResolvedRevision& at, RepoPage& page)
        : service_{&service}, repo_{&repo}, at_{&at}, page_{&page} {}

    Reply<Done> run() {
        KB_TRY(read_files());
        for (auto& [name, variant] : variants_) {
            KB_TRY(const std::string text,
                   text_of(*service_, *repo_, *at_, "build/" + name + "/metadata.json"));
            if (const auto metadata = document::parse_json(text, {}, {.max_depth = 32})) {
                take_metadata(*metadata, variant, page_->kernel);
            }
            page_->variants.push_back(std::move(variant));
        }
        KB_TRY(page_->card, text_of(*service_, *repo_, *at_, "README.md"));
        KB_TRY(page_->history, service_->history(*repo_, *at_, kHistory));
        return Done{};
    }

private:
    Reply<Done> read_files() {
        TreeQuery query{.recursive = true};
        while (true) {
            KB_TRY(TreePage listed, service_->list_tree(*repo_, *at_, query));
            for (hub::TreeEntry& entry : listed.entries) {
                if (entry.kind == hub::EntryKind::file) {
                    take_file(std::move(entry));
                }
            }
            if (!listed.next) {
                return Done{};
            }
            query.after = *listed.next;
        }
    }

    void take_file(hub::TreeEntry entry) {
        if (const auto place = split_variant(entry.path.text());
            place && (variants_.contains(place->first) || variants_.size() < kMostVariants)) {
            PageVariant& variant = variants_[place->first];
            variant.name = place->first;
            ++variant.files;
            variant.bytes += entry.size;
            variant.is_signed = variant.is_signed || place->second == "metadata.json.sigstore";
        }
        if (page_->files.size() < kMostFiles) {
            page_->files.push_back(std::move(entry));
        } else {
            page_->has_more_files = true;
        }
    }

    Service* service_;
    const RepoRow* repo_;
    const ResolvedRevision* at_;
    RepoPage* page_;
    std::map<std::string, PageVariant> variants_;
};

} // namespace

App::Answer App::repo_page(const Call& call) {
    KB_TRY(hub::Refs refs, service_->refs(*call.repo, false));
    std::string revision = call.parameter("rev");
    if (revision.empty()) {
        // Kernels are loaded by version: the newest one is what a visitor looks for.
        std::uint64_t newest = 0;
        revision = "main";
        for (const hub::Ref& branch : refs.branches) {
            const auto version = is_version_branch(branch.ref)
                                     ? parse_unsigned(std::string_view{branch.name}.substr(1))
                                     : std::nullopt;
            if (version && *version >= newest) {
                newest = *version;
                revision = branch.name;
            }
        }
    }
    KB_TRY(const ResolvedRevision at, service_->resolve(*call.repo, revision));
    RepoPage page{.endpoint = options_.base_url,
                  .id = call.repo->id,
                  .visibility = call.repo->visibility,
                  .revision = std::move(revision),
                  .commit = at.oid,
                  .refs = std::move(refs)};
    KB_TRY(PageMaker(*service_, *call.repo, at, page).run());
    if (page.card.empty()) { // versions hold builds, the card lies on main
        KB_TRY(const ResolvedRevision main, service_->resolve(*call.repo, "main"));
        KB_TRY(page.card, text_of(*service_, *call.repo, main, "README.md"));
    }
    return html_response(write_page(page));
}

/// ?q=: repositories of all types whose name holds the text.
App::Answer App::index_page(const Call& call) {
    IndexPage page{.search = registry::parameter(call.query, "q")};
    const std::string wanted = to_lower(page.search);
    for (const hub::RepoType type : {hub::RepoType::kernels,
                                     hub::RepoType::models,
                                     hub::RepoType::datasets,
                                     hub::RepoType::spaces}) {
        KB_TRY(const std::vector<RepoRow> repos, service_->visible_repos(call.caller, type));
        for (const RepoRow& repo : repos) {
            if (to_lower(repo.id.text()).find(wanted) != std::string::npos) {
                page.rows.push_back(
                    {.id = repo.id, .visibility = repo.visibility, .created = repo.created});
            }
        }
    }
    return html_response(write_page(page));
}

} // namespace kb::registry
