// SPDX-License-Identifier: Apache-2.0
#include "registry/mirror.hpp"

#include "base/text.hpp"
#include "registry/root.hpp"
#include "sys/unique_fd.hpp"
#include "sys/worker_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace kb::registry {

namespace {

/// A regular file is held in memory on its way into the commit.
constexpr std::uint64_t kMaxRegular = 64UL << 20U;

Error to_error(const hub::HubStatus& status, std::string_view doing) {
    const ErrorCode code = status.http == 403 ? ErrorCode::denied : ErrorCode::corrupt;
    return Error{.code = code, .message = fmt::format("{}: {}", doing, status.message)};
}

/// The value of a call on the own registry; a refusal is an Error here.
template <typename T>
Result<T> done_or_error(Reply<T> reply, std::string_view doing) {
    if (!reply) {
        return to_error(reply.error(), doing);
    }
    return std::move(reply).value();
}

/// A file that grows over several runs.
class PartialFile final : public MirrorSink {
public:
    static Result<PartialFile> open(const sys::Path& path, std::uint64_t limit) {
        sys::UniqueFd fd{
            ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600)};

        struct ::stat info {};

        if (!fd || ::fstat(fd.get(), &info) != 0) {
            return error_from_errno(errno, fmt::format("opening '{}'", path.string()));
        }
        return PartialFile{path, std::move(fd), static_cast<std::uint64_t>(info.st_size), limit};
    }

    [[nodiscard]] std::uint64_t position() const override { return position_; }

    Result<void> restart() override {
        if (::ftruncate(fd_.get(), 0) != 0) {
            return error_from_errno(errno, fmt::format("emptying '{}'", path_.string()));
        }
        position_ = 0;
        return {};
    }

    Result<void> write(Bytes bytes) override {
        if (bytes.size() > limit_ - std::min(limit_, position_)) {
            return Error{.code = ErrorCode::corrupt,
                         .message =
                             fmt::format("more than the {} bytes that were promised", limit_)};
        }
        const std::string_view text = as_text(bytes);
        for (std::size_t at = 0; at < text.size();) {
            const auto n = ::write(fd_.get(), text.data() + at, text.size() - at);
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n < 0) {
                return error_from_errno(errno, fmt::format("writing '{}'", path_.string()));
            }
            at += static_cast<std::size_t>(n);
            position_ += static_cast<std::uint64_t>(n);
        }
        return {};
    }

    Result<void> sync() {
        return ::fsync(fd_.get()) == 0
                   ? Result<void>{}
                   : error_from_errno(errno, fmt::format("syncing '{}'", path_.string()));
    }

private:
    PartialFile(sys::Path path, sys::UniqueFd fd, std::uint64_t position, std::uint64_t limit)
        : path_{std::move(path)}, fd_{std::move(fd)}, position_{position}, limit_{limit} {}

    sys::Path path_;
    sys::UniqueFd fd_;
    std::uint64_t position_;
    std::uint64_t limit_;
};

/// A commit stream that is made line by line while it is read.
class LineReader final : public http::BodyReader {
public:
    using Next = std::function<Result<std::optional<std::string>>()>;

    explicit LineReader(Next next) : next_{std::move(next)} {}

    Result<std::size_t> read(std::span<std::byte> out) override {
        if (at_ == line_.size()) {
            KB_TRY(std::optional<std::string> line, next_());
            line_ = line ? std::move(*line) : std::string{};
            at_ = 0;
        }
        const std::size_t n = std::min(out.size(), line_.size() - at_);
        std::memcpy(out.data(), line_.data() + at_, n);
        at_ += n;
        return n;
    }

    [[nodiscard]] std::optional<std::uint64_t> length() const override { return std::nullopt; }

private:
    Next next_;
    std::string line_{};
    std::size_t at_ = 0;
};

bool is_version(std::string_view branch) {
    return branch.size() > 1 && branch.front() == 'v' &&
           parse_unsigned(branch.substr(1)).has_value();
}

/// "torch-cpu" of "build/torch-cpu/x.py"; empty for what belongs to no variant.
std::string variant_of(const RelPath& path) {
    const std::vector<std::string_view> parts = split(path.text(), '/');
    return parts.size() > 2 && parts.front() == "build" ? std::string{parts[1]} : std::string{};
}

class Mirror {
public:
    Mirror(Service& service,
           const ServiceParts& parts,
           MirrorSource& source,
           const MirrorOptions& options)
        : service_{&service}, parts_{&parts}, source_{&source}, options_{&options} {
        // An ordinary publisher here: the rule that published files stay holds for a mirror too.
        const bool may_replace = options.replace == MirrorReplace::yes;
        caller_ = {.user = "mirror",
                   .scope = may_replace ? Scope::admin : Scope::write,
                   .namespaces = {options.repo.owner()}};
    }

    Result<MirrorReport> run() {
        KB_TRY(const auto refs, source_->read_refs());
        if (!refs) {
            return Error{.code = ErrorCode::not_found,
                         .message = fmt::format("there is no repository '{}' at {}, or it needs "
                                                "--token-file",
                                                options_->repo.text(),
                                                options_->origin)};
        }
        KB_TRY(const std::vector<hub::Ref> branches, choose(*refs));
        std::vector<std::vector<hub::TreeEntry>> trees;
        for (const hub::Ref& branch : branches) {
            KB_TRY(std::vector<hub::TreeEntry> tree, source_->read_tree(branch.target));
            trees.push_back(wanted(std::move(tree)));
        }
        KB_TRY(check_variants());
        KB_TRY(const CreatedRepo created,
               done_or_error(service_->create_repo(caller_,
                                                   {.type = options_->repo.type(),
                                                    .name = options_->repo.name(),
                                                    .organization = options_->repo.owner(),
                                                    .visibility = options_->visibility}),
                             "making the repository"));
        repo_ = created.repo;
        for (std::size_t i = 0; i < branches.size(); ++i) {
            KB_TRY(take_branch(branches[i], trees[i])
                       .context(fmt::format("mirroring branch '{}' of '{}'",
                                            branches[i].name,
                                            options_->repo.text())));
        }
        return std::move(report_);
    }

private:
    Result<std::vector<hub::Ref>> choose(const hub::Refs& refs) const {
        std::vector<hub::Ref> chosen;
        for (const std::string& name : options_->branches) {
            const hub::Ref* ref = refs.branch(name);
            if (ref == nullptr) {
                return Error{.code = ErrorCode::not_found,
                             .message = fmt::format("'{}' has no branch '{}' at {}",
                                                    options_->repo.text(),
                                                    escape_control(name),
                                                    options_->origin)};
            }
            chosen.push_back(*ref);
        }
        if (options_->branches.empty()) {
            std::ranges::copy_if(refs.branches, std::back_inserter(chosen), [](const auto& ref) {
                return ref.name == "main" || is_version(ref.name);
            });
        }
        return chosen;
    }

    std::vector<hub::TreeEntry> wanted(std::vector<hub::TreeEntry> tree) {
        std::erase_if(tree, [this](const hub::TreeEntry& entry) {
            if (entry.kind != hub::EntryKind::file) {
                return true;
            }
            const std::string variant = variant_of(entry.path);
            seen_variants_.insert(variant);
            return !variant.empty() && !options_->variants.empty() &&
                   std::ranges::find(options_->variants, variant) == options_->variants.end();
        });
        return tree;
    }

    Result<void> check_variants() const {
        for (const std::string& variant : options_->variants) {
            if (!seen_variants_.contains(variant)) {
                return Error{.code = ErrorCode::not_found,
                             .message = fmt::format("no chosen branch of '{}' has variant '{}'",
                                                    options_->repo.text(),
                                                    escape_control(variant))};
            }
        }
        return {};
    }

    /// Path to git id of what is here already.
    Result<std::map<RelPath, hub::GitOid>> here(const std::string& branch) {
        std::map<RelPath, hub::GitOid> files;
        Reply<ResolvedRevision> at = service_->resolve(*repo_, branch);
        if (!at && at.error().http == 404) {
            KB_TRY(done_or_error(
                service_->create_branch(caller_, *repo_, {.name = branch, .empty = true}),
                "making the branch"));
            at = service_->resolve(*repo_, branch);
        }
        KB_TRY(const ResolvedRevision revision,
               done_or_error(std::move(at), "reading the branch here"));
        TreeQuery query{.recursive = true};
        for (;;) {
            KB_TRY(TreePage page,
                   done_or_error(service_->list_tree(*repo_, revision, query), "listing it here"));
            for (const hub::TreeEntry& entry : page.entries) {
                if (entry.kind == hub::EntryKind::file) {
                    files.emplace(entry.path, entry.oid);
                }
            }
            if (!page.next) {
                return files;
            }
            query.after = *page.next;
        }
    }

    Result<void> take_branch(const hub::Ref& branch, const std::vector<hub::TreeEntry>& tree) {
        KB_TRY(const auto files, here(branch.name));
        std::vector<hub::TreeEntry> adds;
        std::ranges::copy_if(tree, std::back_inserter(adds), [&files](const auto& entry) {
            const auto found = files.find(entry.path);
            return found == files.end() || found->second != entry.oid;
        });
        note(fmt::format("branch '{}' at {}: {} to take over, {} here already",
                         branch.name,
                         branch.target.hex().substr(0, 12),
                         counted(adds.size(), "file"),
                         tree.size() - adds.size()));
        KB_TRY(fetch_all(branch.target, adds));
        MirroredBranch result{.name = branch.name,
                              .source = branch.target,
                              .added = adds.size(),
                              .unchanged = tree.size() - adds.size()};
        KB_TRY(result.commit, commit(branch, adds));
        for (const hub::TreeEntry& entry : adds) {
            if (!entry.lfs) {
                KB_TRY(parts_->fs.remove_file(staged(entry)));
            }
        }
        report_.branches.push_back(std::move(result));
        return {};
    }

    // ---- contents ----

    [[nodiscard]] sys::Path staged(const hub::TreeEntry& entry) const {
        return parts_->parts / ("mirror-" + (entry.lfs ? entry.lfs->oid.hex() : entry.oid.hex()));
    }

    /// Each distinct content once, several at a time, the largest first.
    Result<void> fetch_all(const hub::GitOid& commit, const std::vector<hub::TreeEntry>& adds) {
        std::vector<const hub::TreeEntry*> jobs;
        std::set<hub::GitOid> seen;
        for (const hub::TreeEntry& entry : adds) {
            if (seen.insert(entry.oid).second) {
                jobs.push_back(&entry);
            }
        }
        std::ranges::stable_sort(
            jobs, std::greater{}, [](const hub::TreeEntry* entry) { return entry->size; });
        std::vector<Result<void>> results(jobs.size());
        std::atomic<bool> stopped = false;
        sys::parallel_for(jobs.size(), options_->streams, [&](std::size_t i) {
            if (stopped) {
                return;
            }
            results[i] =
                jobs[i]->lfs ? take_object(commit, *jobs[i]) : take_regular(commit, *jobs[i]);
            stopped = stopped || !results[i];
        });
        for (std::size_t i = 0; i < jobs.size(); ++i) {
            KB_TRY(
                std::move(results[i]).context(fmt::format("fetching '{}'", jobs[i]->path.text())));
        }
        return {};
    }

    /// Fetches what is missing of the staged file; `size` is what the tree says.
    Result<void> fetch(const hub::GitOid& commit, const hub::TreeEntry& entry) {
        KB_TRY(PartialFile file, PartialFile::open(staged(entry), entry.size));
        if (file.position() > entry.size) {
            KB_TRY(file.restart());
        }
        const std::uint64_t before = file.position();
        if (before < entry.size) {
            KB_TRY(source_->fetch(commit, entry.path, file));
        }
        if (file.position() != entry.size) {
            KB_TRY(parts_->fs.remove_file(staged(entry)));
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format(
                             "{} bytes came, {} were promised", file.position(), entry.size)};
        }
        count(entry.size - before, before);
        return file.sync();
    }

    Result<void> take_object(const hub::GitOid& commit, const hub::TreeEntry& entry) {
        const hub::LfsPointer& pointer = *entry.lfs;
        if (hub::pointer_id(pointer) != entry.oid || pointer.size != entry.size) {
            return Error{.code = ErrorCode::corrupt,
                         .message = "its id is not that of a pointer to its object"};
        }
        KB_TRY(const std::optional<std::uint64_t> size, parts_->blobs.size(pointer.oid));
        if (size == pointer.size) {
            count(0, pointer.size);
        } else {
            KB_TRY(fetch(commit, entry));
            auto adopted =
                parts_->blobs.adopt(staged(entry), {.digest = pointer.oid, .size = pointer.size});
            if (!adopted) { // wrong bytes are no beginning of the right ones
                KB_TRY(parts_->fs.remove_file(staged(entry)));
                return adopted.error();
            }
        }
        KB_TRY(parts_->meta.add_lfs(
            repo_->key, {.sha256 = pointer.oid, .size = pointer.size}, service_->now()));
        // A collector beside us may have taken it between the look and the note.
        KB_TRY(const std::optional<std::uint64_t> there, parts_->blobs.size(pointer.oid));
        return there == pointer.size
                   ? Result<void>{}
                   : Error{.code = ErrorCode::transient,
                           .message = "its object was just collected; run it again"};
    }

    Result<void> take_regular(const hub::GitOid& commit, const hub::TreeEntry& entry) {
        if (entry.size > kMaxRegular) {
            return Error{.code = ErrorCode::unsupported,
                         .message = fmt::format("{} outside LFS", human_bytes(entry.size))};
        }
        KB_TRY(fetch(commit, entry));
        KB_TRY(const std::string content, parts_->fs.read_file(staged(entry), kMaxRegular));
        const hub::GitOid found = hub::git_id(hub::GitKind::blob, content);
        if (found != entry.oid) {
            KB_TRY(parts_->fs.remove_file(staged(entry)));
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format(
                             "expected git id {}, found {}", entry.oid.hex(), found.hex())};
        }
        return {};
    }

    // ---- commit ----

    Result<hub::GitOid> commit(const hub::Ref& branch, const std::vector<hub::TreeEntry>& adds) {
        std::size_t next = 0;
        bool begun = false;
        LineReader body{[&]() -> Result<std::optional<std::string>> {
            if (!std::exchange(begun, true)) {
                return std::optional{hub::write_line(
                    hub::CommitHeader{.summary = fmt::format("Mirror {}", options_->repo.text()),
                                      .description = fmt::format("Commit {} of branch '{}' at {}",
                                                                 branch.target.hex(),
                                                                 branch.name,
                                                                 options_->origin)})};
            }
            if (next == adds.size()) {
                return std::optional<std::string>{};
            }
            KB_TRY(std::string line, line_of(adds[next++]));
            return std::optional{std::move(line)};
        }};
        KB_TRY(const CommitResult made,
               done_or_error(service_->commit(caller_, *repo_, {.revision = branch.name}, body),
                             "committing"));
        return made.commit;
    }

    [[nodiscard]] Result<std::string> line_of(const hub::TreeEntry& entry) const {
        if (entry.lfs) {
            return hub::write_line(
                hub::LfsFileOp{.path = entry.path, .oid = entry.lfs->oid, .size = entry.lfs->size});
        }
        KB_TRY(const std::string content, parts_->fs.read_file(staged(entry), kMaxRegular));
        return hub::write_line(hub::FileOp{.path = entry.path}, content);
    }

    void note(const std::string& text) const {
        if (options_->note) {
            options_->note(text);
        }
    }

    void count(std::uint64_t fetched, std::uint64_t was_here) {
        const std::lock_guard lock{mutex_};
        report_.bytes_fetched += fetched;
        report_.bytes_here += was_here;
    }

    Service* service_;
    const ServiceParts* parts_;
    MirrorSource* source_;
    const MirrorOptions* options_;
    Caller caller_{};
    std::optional<RepoRow> repo_{};
    std::set<std::string> seen_variants_{};
    std::mutex mutex_;
    MirrorReport report_{};
};

} // namespace

Result<MirrorReport> mirror_repo(Service& service,
                                 const ServiceParts& parts,
                                 MirrorSource& source,
                                 const MirrorOptions& options) {
    return Mirror{service, parts, source, options}.run();
}

Result<MirrorReport> mirror_into_root(const sys::Path& root,
                                      sys::FileSystem& fs,
                                      sys::Clock& clock,
                                      MirrorSource& source,
                                      const MirrorOptions& options) {
    KB_TRY(check_root(fs, root));
    const RootPaths paths{root};
    KB_TRY(const std::string text, read_settings(fs, root));
    Diagnostics diagnostics;
    auto settings = parse_settings(text, paths.settings().string(), diagnostics);
    if (!settings) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("'{}' is wrong: {}",
                                            paths.settings().string(),
                                            diagnostics.items().front().message)};
    }
    KB_TRY(OpenedRoot opened, open_root(fs, root, RootUse::share));
    Result<sys::FileLock> alone = sys::FileLock::try_acquire(root / "MIRROR");
    if (!alone && alone.error().code == ErrorCode::transient) {
        return Error{.code = ErrorCode::denied,
                     .message =
                         fmt::format("another 'registry mirror' works on '{}'", root.string())};
    }
    KB_TRY(const sys::FileLock lock, std::move(alone));
    const ServiceParts parts{.meta = *opened.meta,
                             .blobs = *opened.blobs,
                             .fs = fs,
                             .clock = clock,
                             .settings = std::move(*settings),
                             .temporary = paths.temporary(),
                             .parts = paths.parts()};
    Service service{parts};
    return mirror_repo(service, parts, source, options);
}

} // namespace kb::registry
