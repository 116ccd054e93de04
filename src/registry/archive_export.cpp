// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "document/json.hpp"
#include "registry/archive.hpp"
#include "registry/commit_receiver.hpp"
#include "registry/root.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace kb::registry {

namespace {

using document::Node;

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kCopyBlock = 1UL << 20U;

/// Plain ustar with short names of ours; sizes from 8 GiB on in the binary form that all readers of
/// today know. Owner, mode and time are the same for all: equal registries give equal archives.
class TarWriter {
public:
    explicit TarWriter(sys::OutputFile& out) : out_{&out} {}

    Result<void> begin(const std::string& name, std::uint64_t size) {
        KB_ASSERT(name.size() < 100, "names are a folder and a hex id");
        std::string header(kTarBlock, '\0');
        const auto put = [&header](std::size_t at, std::string_view text) {
            header.replace(at, text.size(), text);
        };
        put(0, name);
        put(100, "0000644");
        put(108, "0000000");
        put(116, "0000000");
        put(136, "00000000000");
        put(156, "0");
        put(257, "ustar");
        put(263, "00");
        if (size < (1ULL << 33U)) {
            put(124, fmt::format("{:011o}", size));
        } else {
            header[124] = static_cast<char>(0x80);
            for (std::size_t i = 0; i < 8; ++i) {
                header[135 - i] = static_cast<char>((size >> (8 * i)) & 0xFFU);
            }
        }
        put(148, "        "); // the checksum counts itself as spaces
        unsigned sum = 0;
        for (const char c : header) {
            sum += static_cast<unsigned char>(c);
        }
        put(148, fmt::format("{:06o}", sum) + '\0' + ' ');
        size_ = size;
        return out_->write(header);
    }

    Result<void> write(std::string_view bytes) { return out_->write(bytes); }

    Result<void> end() {
        const std::size_t rest = size_ % kTarBlock;
        return rest == 0 ? Result<void>{} : out_->write(std::string(kTarBlock - rest, '\0'));
    }

    Result<void> add(const std::string& name, std::string_view content) {
        KB_TRY(begin(name, content.size()));
        KB_TRY(write(content));
        return end();
    }

    Result<void> finish() {
        KB_TRY(out_->write(std::string(2 * kTarBlock, '\0')));
        return out_->sync();
    }

private:
    sys::OutputFile* out_;
    std::uint64_t size_ = 0;
};

class Exporter {
public:
    Exporter(OpenedRoot& opened, ArchiveReport& report)
        : meta_{opened.meta.get()}, blobs_{opened.blobs.get()}, report_{&report} {}

    Result<void> add_repo(const RepoRow& repo) {
        ++report_->repositories;
        files_.clear();
        seen_.clear();
        Node refs = Node::array();
        KB_TRY(const std::vector<RefRow> rows, meta_->refs(repo.key));
        for (const RefRow& ref : rows) {
            if (ref.name.starts_with("refs/pr/")) {
                continue;
            }
            ++report_->refs;
            refs.push(Node::table({{"name", ref.name}, {"commit", ref.commit.hex()}}));
            KB_TRY(add_history(repo, ref.commit));
        }
        Node files = Node::array();
        for (const auto& [oid, file] : files_) {
            ++report_->files;
            contents_.emplace(file.sha256, file);
            files.push(Node::table({{"oid", oid.hex()},
                                    {"sha256", file.sha256.hex()},
                                    {"size", file.size},
                                    {"lfs", file.is_lfs}}));
        }
        repos_.push(Node::table({{"type", hub::plural(repo.id.type())},
                                 {"id", repo.id.text()},
                                 {"private", repo.visibility == hub::Visibility::private_},
                                 {"refs", std::move(refs)},
                                 {"files", std::move(files)}}));
        return {};
    }

    Result<void> write(TarWriter& tar) {
        const Node head = Node::table(
            {{"schema", "kernel-builder/registry-archive/1"}, {"repositories", std::move(repos_)}});
        KB_TRY(tar.add("registry.json", document::write_json(head)));
        for (const auto& [oid, payload] : commits_) {
            KB_TRY(tar.add("commits/" + oid.hex(), payload));
        }
        for (const auto& [oid, payload] : trees_) {
            KB_TRY(tar.add("trees/" + oid.hex(), payload));
        }
        report_->commits = commits_.size();
        for (const auto& [sha256, file] : contents_) {
            KB_TRY(write_content(tar, file).context("exporting " + sha256.hex()));
        }
        return tar.finish();
    }

private:
    static Error damaged(std::string_view what) {
        return {.code = ErrorCode::corrupt,
                .message =
                    fmt::format("{} is missing or altered; 'registry fsck' says more", what)};
    }

    Result<void> add_history(const RepoRow& repo, const hub::GitOid& head) {
        std::vector<hub::GitOid> todo{head};
        while (!todo.empty()) {
            const hub::GitOid oid = todo.back();
            todo.pop_back();
            if (!seen_.insert(oid).second) {
                continue;
            }
            KB_TRY(const std::optional<hub::GitCommit> commit, meta_->find_commit(repo.key, oid));
            std::string payload = commit ? hub::write_commit(*commit) : std::string{};
            if (!commit || hub::git_id(hub::GitKind::commit, payload) != oid) {
                return damaged("commit " + oid.hex());
            }
            commits_.emplace(oid, std::move(payload));
            todo.insert(todo.end(), commit->parents.begin(), commit->parents.end());
            KB_TRY(add_tree(repo, commit->tree));
        }
        return {};
    }

    // NOLINTNEXTLINE(misc-no-recursion): as deep as a path, which is limited
    Result<void> add_tree(const RepoRow& repo, const hub::GitOid& oid) {
        if (!seen_.insert(oid).second) {
            return {};
        }
        KB_TRY(const std::vector<hub::GitTreeItem> items, meta_->tree(oid));
        std::string payload = hub::write_tree(items);
        if (hub::git_id(hub::GitKind::tree, payload) != oid) {
            return damaged("tree " + oid.hex());
        }
        trees_.emplace(oid, std::move(payload));
        for (const hub::GitTreeItem& item : items) {
            if (item.mode == hub::GitMode::tree) {
                KB_TRY(add_tree(repo, item.oid));
                continue;
            }
            KB_TRY(const std::optional<FileRow> file, meta_->find_file(repo.key, item.oid));
            if (!file) {
                return damaged("file " + item.oid.hex());
            }
            files_.emplace(item.oid, *file);
        }
        return {};
    }

    Result<void> write_content(TarWriter& tar, const FileRow& file) {
        report_->bytes += file.size;
        const std::string name = "contents/" + file.sha256.hex();
        if (is_small(file)) {
            KB_TRY(const std::optional<std::string> content, meta_->small_blob(file.sha256));
            return content ? tar.add(name, *content) : damaged("a small file");
        }
        KB_TRY(const auto blob, blobs_->open_read(file.sha256));
        if (blob->size() != file.size) {
            return damaged("a file");
        }
        KB_TRY(tar.begin(name, file.size));
        std::string block(kCopyBlock, '\0');
        for (std::uint64_t at = 0; at < file.size;) {
            KB_TRY(const std::size_t n, blob->read_at(at, block.data(), block.size()));
            if (n == 0) {
                return damaged("a file");
            }
            KB_TRY(tar.write(std::string_view{block}.substr(0, n)));
            at += n;
        }
        return tar.end();
    }

    MetaStore* meta_;
    store::BlobStore* blobs_;
    ArchiveReport* report_;
    Node repos_ = Node::array();
    std::map<hub::GitOid, std::string> commits_;
    std::map<hub::GitOid, std::string> trees_;
    std::map<digest::Digest, FileRow> contents_;
    // Of the repository at hand.
    std::map<hub::GitOid, FileRow> files_;
    std::set<hub::GitOid> seen_;
};

Result<std::vector<RepoRow>> chosen_repos(MetaStore& meta, const std::vector<std::string>& names) {
    KB_TRY(std::vector<RepoRow> all, meta.repos());
    if (names.empty()) {
        return all;
    }
    std::vector<RepoRow> chosen;
    for (const std::string& name : names) {
        const auto found = std::ranges::find_if(all, [&name](const RepoRow& repo) {
            return fmt::format("{}/{}", hub::plural(repo.id.type()), repo.id.text()) == name;
        });
        if (found == all.end()) {
            return Error{.code = ErrorCode::not_found,
                         .message = fmt::format("there is no repository '{}'; a name looks like "
                                                "'kernels/owner/name'",
                                                escape_control(name))};
        }
        chosen.push_back(*found);
    }
    return chosen;
}

} // namespace

Result<ArchiveReport>
export_archive(sys::FileSystem& fs, const sys::Path& root, const ExportOptions& options) {
    KB_TRY(OpenedRoot opened, open_root(fs, root, RootUse::manage));
    KB_TRY(const std::vector<RepoRow> repos, chosen_repos(*opened.meta, options.repos));
    ArchiveReport report;
    Exporter exporter{opened, report};
    for (const RepoRow& repo : repos) {
        KB_TRY(exporter.add_repo(repo).context("exporting " + repo.id.text()));
    }
    if (sys::exists(fs, options.output)) {
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format("'{}' exists", options.output.string())};
    }
    const sys::Path part = options.output.string() + ".part";
    KB_TRY(fs.remove_file(part)); // of an export that was killed
    KB_TRY(const auto out, fs.create(part, FileMode::regular));
    TarWriter tar{*out};
    if (Result<void> written = exporter.write(tar); !written) {
        [[maybe_unused]] const Result<void> removed = fs.remove_file(part);
        return std::move(written).error();
    }
    KB_TRY(fs.rename(part, options.output));
    return report;
}

} // namespace kb::registry
