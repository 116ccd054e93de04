// SPDX-License-Identifier: Apache-2.0
#include "project/new_files.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::project {

namespace {

/// New files beside their targets, then renames; undone in reverse when one fails.
class Transaction {
public:
    Transaction(sys::FileSystem& fs, sys::Path directory) : fs_{fs}, root_{std::move(directory)} {}

    Result<void> stage(const FileImage& file) {
        const sys::Path target = root_ / file.path.text();
        KB_TRY(make_parents(target.parent_path()));
        const sys::Path temporary = target.parent_path() / fmt::format(".{}.kernel-builder-new",
                                                                       target.filename().string());
        steps_.push_back({temporary, target, sys::exists(fs_, target), false});
        return fs_.write_atomic(temporary, file.content, file.mode);
    }

    Result<void> commit() {
        for (Step& step : steps_) {
            if (step.replaces) {
                KB_TRY(fs_.exchange(step.temporary, step.target));
            } else {
                KB_TRY(fs_.rename(step.temporary, step.target));
            }
            step.done = true;
        }
        return {};
    }

    /// The old content of what was replaced. All new files are in place: a failure loses nothing
    /// and undoes nothing.
    Result<void> clean_up() {
        for (const Step& step : steps_) {
            if (step.replaces) {
                KB_TRY(fs_.remove_file(step.temporary));
            }
        }
        return {};
    }

    /// As far as the file system still lets us; the first error is what the user hears of.
    void roll_back() {
        for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
            if (step->done && step->replaces) {
                static_cast<void>(fs_.exchange(step->temporary, step->target));
            } else if (step->done) {
                static_cast<void>(fs_.remove_file(step->target));
            }
            static_cast<void>(fs_.remove_file(step->temporary));
        }
        for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
            const auto entries = fs_.list(*made);
            if (entries && entries->empty()) {
                static_cast<void>(fs_.remove_tree(*made));
            }
        }
    }

private:
    struct Step {
        sys::Path temporary{};
        sys::Path target{};
        bool replaces = false;
        bool done = false;
    };

    Result<void> make_parents(const sys::Path& directory) {
        std::vector<sys::Path> missing;
        for (sys::Path path = directory; !path.empty() && !sys::exists(fs_, path);
             path = path.parent_path()) {
            missing.push_back(path);
        }
        for (auto path = missing.rbegin(); path != missing.rend(); ++path) {
            KB_TRY(fs_.make_directories(*path));
            made_.push_back(*path);
        }
        return {};
    }

    sys::FileSystem& fs_;
    sys::Path root_;
    std::vector<Step> steps_;
    std::vector<sys::Path> made_;
};

Result<void> stage_and_commit(Transaction& transaction, std::span<const FileImage> files) {
    for (const FileImage& file : files) {
        KB_TRY(transaction.stage(file));
    }
    return transaction.commit();
}

} // namespace

Result<std::vector<std::string>>
existing_files(sys::FileSystem& fs, const sys::Path& root, std::span<const FileImage> images) {
    std::vector<std::string> existing;
    for (const FileImage& image : images) {
        const auto info = fs.stat(root / image.path.text(), sys::FollowLinks::no);
        if (info) {
            existing.push_back(image.path.text());
        } else if (info.error().code != ErrorCode::not_found) {
            return info.error();
        }
    }
    std::ranges::sort(existing);
    return existing;
}

Result<void> write_new_files(sys::FileSystem& fs,
                             const sys::Path& root,
                             std::span<const FileImage> images,
                             Force force) {
    KB_TRY(const std::vector<std::string> existing, existing_files(fs, root, images));
    if (!existing.empty() && force == Force::no) {
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format("{} already there, nothing was written: {}",
                                            counted(existing.size(), "file") +
                                                (existing.size() == 1 ? " is" : " are"),
                                            quoted_list(existing))};
    }
    Transaction transaction{fs, root};
    if (auto done = stage_and_commit(transaction, images); !done) {
        transaction.roll_back();
        return std::move(done).error();
    }
    return transaction.clean_up();
}

} // namespace kb::project
