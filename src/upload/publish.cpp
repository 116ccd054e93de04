// SPDX-License-Identifier: Apache-2.0
#include "upload/publish.hpp"

#include "base/text.hpp"
#include "document/json.hpp"
#include "sys/file_lock.hpp"
#include "sys/worker_pool.hpp"
#include "upload/commit_body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace kb::upload {

namespace {

/// One branch on its way: what shall be there, what was seen there, what is to be done.
struct Work {
    BranchContent content{};
    BranchState state = BranchState::existing;
    RemoteTree tree{};
    BranchPlan plan{};
    UploadModes modes{};
    std::set<std::string> known_pull_requests{};
    BranchResult result{};
};

class Publisher {
public:
    Publisher(const PublishRequest& request, const PublishServices& services)
        : request_{&request}, hub_{services.hub}, fs_{services.fs} {
        for (BranchContent& content : make_contents(request.input)) {
            works_.push_back({.content = std::move(content)});
        }
        report_.repo_id = hub_->repo().text();
        report_.branch = request.input.branch;
        report_.url = hub_->web_url("/tree/" + request.input.branch).to_wire();
    }

    Result<UploadReport> run() {
        KB_TRY(read_remote());
        KB_TRY(refuse_replacing());
        const bool changes_nothing = report_.plan.empty() && !creates_branches();
        if (request_->dry_run == DryRun::yes || changes_nothing) {
            KB_TRY(confirm());
            report_.status = changes_nothing ? UploadStatus::no_changes : UploadStatus::planned;
            collect_results();
            if (request_->dry_run == DryRun::no) { // a run that was killed while reading back
                KB_TRY(fs_->remove_file(request_->journal));
            }
            return std::move(report_);
        }
        if (!hub_->has_token()) {
            return Error{.code = ErrorCode::denied,
                         .message = "no token: set HF_TOKEN, or HF_TOKEN_PATH to a file with it"};
        }
        // Two uploads from one directory would share the journal.
        KB_TRY(fs_->make_directories(request_->journal.parent_path()));
        KB_TRY(const sys::FileLock lock,
               sys::FileLock::acquire(request_->journal.string() + ".lock", [this] {
                   note("waiting for another upload from this directory");
               }));
        KB_TRY(Journal journal, open_journal());
        KB_TRY(make_repository());
        for (Work& work : works_) {
            KB_TRY(publish_branch(work, journal));
        }
        KB_TRY(confirm()); // also when another publisher was faster with all of it
        KB_TRY(journal.close());
        report_.status = request_->mode == Mode::pull_request ? UploadStatus::pull_request_created
                                                              : UploadStatus::uploaded;
        collect_results();
        return std::move(report_);
    }

private:
    void note(const std::string& text) const {
        if (request_->note) {
            request_->note(text);
        }
    }

    // ---- what is there ----

    /// A branch with the content of main is new, too: clients look for versions by branch.
    [[nodiscard]] bool creates_branches() const {
        return request_->mode == Mode::commit && std::ranges::any_of(works_, [](const Work& work) {
                   return work.state == BranchState::to_create;
               });
    }

    Result<void> read_remote() {
        KB_TRY(const auto refs, hub_->read_refs());
        // One without main was left by a server that died while it made it; making it again heals
        // it.
        repo_exists_ = refs && refs->branch("main") != nullptr;
        report_.plan = {};
        for (Work& work : works_) {
            KB_TRY(read_branch(work, refs ? *refs : hub::Refs{}));
            report_.plan.branches.push_back(work.plan);
        }
        return {};
    }

    Result<void> read_branch(Work& work, const hub::Refs& refs) {
        const hub::Ref* ref = refs.branch(work.content.branch);
        const bool is_new = ref == nullptr;
        if (is_new) {
            work.state = BranchState::to_create;
            ref = refs.branch("main"); // what a new branch begins with
        } else if (!work.result.created) {
            work.state = BranchState::existing;
        }
        work.tree = {};
        if (ref != nullptr) {
            KB_TRY(work.tree, hub_->read_tree(ref->target));
        }
        return replan(work);
    }

    Result<void> replan(Work& work) {
        for (const std::size_t index : files_to_identify(work.content, work.tree)) {
            KB_TRY(identify(*fs_, work.content.files[index]));
        }
        work.plan = plan_branch(work.content, work.tree, work.state);
        return {};
    }

    Result<void> refuse_replacing() {
        std::set<std::string> changed;
        for (const Work& work : works_) {
            for (std::string& variant : changed_variants(work.plan, work.tree)) {
                changed.insert(std::move(variant));
            }
        }
        report_.plan.refused_variants.assign(changed.begin(), changed.end());
        if (changed.empty() || request_->replace == Replace::yes) {
            report_.plan.refused_variants.clear();
            return {};
        }
        if (request_->dry_run == DryRun::yes) {
            return {}; // the plan says it
        }
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format(
                         "branch '{}' holds {} with other content; users of that version would get "
                         "other code: raise the version, or pass --replace",
                         request_->input.branch,
                         quoted_list(report_.plan.refused_variants))};
    }

    // ---- places to write to ----

    /// Only for what is confirmed: a refused upload leaves no empty repository behind.
    Result<void> make_repository() {
        if (repo_exists_ || request_->mode == Mode::pull_request) {
            return {};
        }
        KB_TRY(confirm());
        note(fmt::format("creating repository '{}'", hub_->repo().text()));
        KB_TRY(hub_->create_repo(request_->visibility));
        KB_TRY(read_remote());
        for (const Work& work : works_) {
            KB_TRY(refuse_missing(work));
        }
        return refuse_replacing();
    }

    Result<void> refuse_missing(const Work& work) const {
        return work.tree.head
                   ? Result<void>{}
                   : Error{.code = ErrorCode::not_found,
                           .message =
                               fmt::format("branch '{}' of '{}' was created but is not there",
                                           work.content.branch,
                                           hub_->repo().text())};
    }

    /// After its contents are there and confirmed, just before its commit. One that we made begins
    /// as the main that was read; when that moved meanwhile, the commit's parent tells.
    Result<void> make_branch(Work& work, Journal& journal) {
        if (work.state != BranchState::to_create || request_->mode == Mode::pull_request) {
            return {};
        }
        note(fmt::format("creating branch '{}'", work.content.branch));
        KB_TRY(work.result.created, hub_->create_branch(work.content.branch));
        return work.result.created ? Result<void>{} : join_branch(work, journal);
    }

    /// Another publisher was faster: what its branch holds counts.
    Result<void> join_branch(Work& work, Journal& journal) {
        KB_TRY(const auto refs, hub_->read_refs());
        const hub::Ref* ref = refs ? refs->branch(work.content.branch) : nullptr;
        if (ref == nullptr) {
            work.tree = {};
            return refuse_missing(work);
        }
        work.state = BranchState::existing;
        KB_TRY(work.tree, hub_->read_tree(ref->target));
        KB_TRY(replan(work));
        KB_TRY(refuse_replacing());
        return send_content(work, journal);
    }

    Result<Journal> open_journal() const {
        std::vector<BranchContent> contents;
        for (const Work& work : works_) {
            contents.push_back(work.content);
        }
        return Journal::open(
            *fs_,
            request_->journal,
            {.endpoint = hub_->endpoint().to_wire(),
             .repo = fmt::format("{}/{}", hub::plural(hub_->repo().type()), hub_->repo().text()),
             .branch = request_->input.branch,
             .content = content_digest(contents)});
    }

    // ---- sending ----

    Result<void> publish_branch(Work& work, Journal& journal) {
        if (!work.plan.empty() && request_->mode == Mode::pull_request) {
            KB_TRY(const hub::Refs refs, hub_->read_refs_with_pull_requests());
            for (const hub::Ref& ref : refs.pull_requests.value_or(std::vector<hub::Ref>{})) {
                work.known_pull_requests.insert(ref.ref);
            }
        }
        KB_TRY(send_confirmed(work, journal));
        KB_TRY(make_branch(work, journal));
        if (work.plan.empty()) {
            work.result.commit = work.tree.head;
            return {};
        }
        KB_TRY(commit(work, journal));
        return request_->mode == Mode::commit ? read_back(work) : Result<void>{};
    }

    Result<void> confirm() {
        return request_->confirm && !std::exchange(is_confirmed_, true) ? request_->confirm()
                                                                        : Result<void>{};
    }

    /// What is sent and what is confirmed are the same files: the second reads them from memory.
    Result<void> send_confirmed(Work& work, Journal& journal) {
        if (!request_->confirm || is_confirmed_) {
            return send_content(work, journal);
        }
        Result<void> confirmed;
        Result<void> sent;
        sys::parallel_for(2, 2, [&](std::size_t job) {
            if (job == 0) {
                sent = send_content(work, journal);
            } else {
                confirmed = confirm();
            }
        });
        KB_TRY(std::move(confirmed)); // a registry refuses wrong content too, but knows less of why
        return sent;
    }

    Result<void> send_content(Work& work, Journal& journal) {
        // A branch that is still to be made begins as main.
        const bool is_there = work.state == BranchState::existing || work.result.created ||
                              request_->mode == Mode::pull_request;
        KB_TRY(ask_modes(*hub_, is_there ? work.plan.branch : "main", work.plan, work.modes));
        const std::vector<LocalFile> blobs = lfs_blobs(work.plan, work.modes);
        if (blobs.empty()) {
            return {};
        }
        std::optional<std::string> ref;
        if (request_->mode == Mode::commit && is_there) {
            ref = work.content.branch;
        }
        KB_TRY(const TransferCounts counts,
               send_blobs(*hub_, journal, blobs, ref, request_->transfer));
        skipped_by_journal_ += counts.blobs_from_journal;
        report_.transfer.bytes_sent += counts.bytes_sent;
        report_.transfer.blobs_sent += counts.blobs_sent;
        report_.transfer.blobs_present += counts.blobs_present;
        report_.transfer.blobs_from_journal += counts.blobs_from_journal;
        report_.transfer.parts_resumed += counts.parts_resumed;
        return {};
    }

    Result<http::Response> post(Work& work) const {
        hub::CommitHeader header{.summary = request_->message};
        if (work.tree.head) {
            header.parent_commit = work.tree.head->hex();
        }
        KB_TRY(std::string body, make_commit_body(*fs_, header, work.plan, work.modes));
        keep_ids(work);
        note(fmt::format("committing {} to '{}'",
                         counted(work.plan.adds.size() + work.plan.deletes.size(), "change"),
                         work.content.branch));
        return hub_->post_commit(work.content.branch,
                                 std::move(body),
                                 request_->mode == Mode::pull_request ? "create_pr=1" : "");
    }

    /// Reading back compares ids: what the commit was made of need not be read again for them.
    static void keep_ids(Work& work) {
        auto file = work.content.files.begin(); // both are sorted by path
        for (const LocalFile& added : work.plan.adds) {
            while (file->path != added.path) {
                ++file;
            }
            file->git_oid = added.git_oid;
        }
    }

    /// Posts until the branch holds what is wanted: the only place that decides what an answer, or
    /// its loss, means.
    Result<void> commit(Work& work, Journal& journal) {
        unsigned moves = 0;
        for (unsigned attempt = 1;;) {
            const Result<http::Response> outcome = post(work);
            if (outcome && outcome->ok() && take_answer(work, *outcome)) {
                return {};
            }
            const std::string doing = fmt::format("committing to branch '{}'", work.content.branch);
            const bool moved = outcome && outcome->status == 412;
            const bool lost = !outcome
                                  ? http::is_retryable(outcome.error())
                                  : outcome->ok() || http::is_retryable_status(outcome->status);
            if (!moved && !lost) {
                if (!outcome) {
                    return Error{outcome.error()};
                }
                KB_TRY(recover_blobs(work, journal, *outcome, doing));
                continue;
            }
            if (!moved) {
                const auto url = hub_->web_url("/commit");
                KB_TRY(const bool again, hub_->retrier().wait(url, outcome, attempt++));
                if (!again) {
                    return outcome ? hub_->explain(*outcome, doing) : Error{outcome.error()};
                }
            }
            KB_TRY(const bool done, look_again(work, journal));
            if (done) {
                return {};
            }
            if (moved && ++moves > request_->replans) {
                return hub_->explain(*outcome, doing);
            }
        }
    }

    /// False: a success that does not say which commit it made counts as a lost answer.
    bool take_answer(Work& work, const http::Response& response) const {
        const auto json = document::parse_json(response.body, {.name = "answer"});
        const auto answer =
            json ? hub::parse_commit_answer(*json) : Result<hub::CommitAnswer>{json.error()};
        if (!answer ||
            (request_->mode == Mode::pull_request && !answer->pull_request_url.has_value())) {
            return false;
        }
        work.result.commit = answer->commit;
        work.result.pull_request_url = answer->pull_request_url;
        return true;
    }

    /// A registry that lost blobs which the journal says it had: sends them again, once.
    Result<void> recover_blobs(Work& work,
                               Journal& journal,
                               const http::Response& response,
                               const std::string& doing) {
        const bool may_be_blobs = response.status == 400 || response.status == 404 ||
                                  response.status == 409 || response.status == 422;
        if (!may_be_blobs || skipped_by_journal_ == 0) {
            return hub_->explain(response, doing);
        }
        skipped_by_journal_ = 0;
        note("the registry no longer has what it confirmed; sending it again");
        KB_TRY(journal.forget_blobs());
        return send_content(work, journal);
    }

    /// After a lost answer or a moved branch: is what we want there already, by us or by another?
    /// Else plans on the new head, unless the same places were changed.
    Result<bool> look_again(Work& work, Journal& journal) {
        if (request_->mode == Mode::pull_request) {
            KB_TRY(const bool found, find_pull_request(work));
            if (found) {
                return true;
            }
        }
        KB_TRY(const auto refs, hub_->read_refs());
        const hub::Ref* ref = refs ? refs->branch(work.content.branch) : nullptr;
        if (ref == nullptr) {
            return Error{.code = ErrorCode::not_found,
                         .message = fmt::format("branch '{}' disappeared while publishing to it",
                                                work.content.branch)};
        }
        if (work.tree.head == ref->target) {
            return false;
        }
        const RemoteTree before = std::move(work.tree);
        KB_TRY(work.tree, hub_->read_tree(ref->target));
        work.state = BranchState::existing;
        KB_TRY(replan(work));
        if (work.plan.empty()) {
            work.result.commit = ref->target;
            return true;
        }
        KB_TRY(refuse_contested(work, changed_paths(before, work.tree)));
        note(fmt::format("branch '{}' moved; going on from its new head", work.content.branch));
        KB_TRY(send_content(work, journal));
        return false;
    }

    Result<void> refuse_contested(const Work& work, const std::vector<RelPath>& changed) const {
        const std::vector<RelPath> contested = contested_paths(work.plan, changed);
        if (contested.empty()) {
            return {};
        }
        std::string text = fmt::format("branch '{}' moved while publishing: commit {}",
                                       work.content.branch,
                                       work.tree.head->hex());
        if (const std::string who = hub_->describe_commit(*work.tree.head); !who.empty()) {
            text += " " + who;
        }
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format("{} changed '{}'{}, which this upload changes too; "
                                            "nothing was published, look at it and run again",
                                            text,
                                            contested.front().text(),
                                            contested.size() > 1
                                                ? fmt::format(" and {} more", contested.size() - 1)
                                                : "")};
    }

    Result<bool> find_pull_request(Work& work) {
        KB_TRY(const hub::Refs refs, hub_->read_refs_with_pull_requests());
        for (const hub::Ref& ref : refs.pull_requests.value_or(std::vector<hub::Ref>{})) {
            if (work.known_pull_requests.contains(ref.ref)) {
                continue;
            }
            KB_TRY(const RemoteTree tree, hub_->read_tree(ref.target));
            for (const std::size_t index : files_to_identify(work.content, tree)) {
                KB_TRY(identify(*fs_, work.content.files[index]));
            }
            if (plan_branch(work.content, tree, work.state).empty()) {
                const std::string number = ref.ref.substr(ref.ref.rfind('/') + 1);
                work.result.commit = ref.target;
                work.result.pull_request_url = hub_->web_url("/discussions/" + number).to_wire();
                return true;
            }
            work.known_pull_requests.insert(ref.ref);
        }
        return false;
    }

    // ---- what a reader gets now ----

    Result<void> read_back(Work& work) {
        KB_TRY(const RemoteTree tree,
               hub_->read_tree(*work.result.commit).context("reading back what was published"));
        for (const std::size_t index : files_to_identify(work.content, tree)) {
            KB_TRY(identify(*fs_, work.content.files[index]));
        }
        const BranchPlan rest = plan_branch(work.content, tree, work.state);
        if (!rest.empty()) {
            const RelPath& path = rest.adds.empty() ? rest.deletes.front() : rest.adds.front().path;
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format("commit {} of branch '{}' is not what was sent: "
                                                "'{}' differs",
                                                work.result.commit->hex(),
                                                work.content.branch,
                                                path.text())};
        }
        report_.verified += rest.unchanged;
        return {};
    }

    void collect_results() {
        report_.branches.clear();
        for (std::size_t i = 0; i < works_.size(); ++i) {
            Work& work = works_[i];
            const BranchPlan& first = report_.plan.branches[i];
            work.result.branch = work.content.branch;
            work.result.added = first.adds.size();
            work.result.deleted = first.deletes.size();
            work.result.unchanged = first.unchanged;
            if (!work.result.commit && work.state == BranchState::existing) {
                work.result.commit = work.tree.head;
            }
            report_.branches.push_back(work.result);
        }
    }

    const PublishRequest* request_;
    const HubClient* hub_;
    sys::FileSystem* fs_;
    std::vector<Work> works_;
    UploadReport report_{};
    bool repo_exists_ = false;
    bool is_confirmed_ = false;
    std::size_t skipped_by_journal_ = 0;
};

} // namespace

Result<UploadReport> publish(const PublishRequest& request, const PublishServices& services) {
    KB_ASSERT(services.hub != nullptr && services.fs != nullptr, "both services are needed");
    return Publisher{request, services}.run();
}

} // namespace kb::upload
