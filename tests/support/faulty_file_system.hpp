// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/file_system.hpp"

#include <string>
#include <utility>
#include <vector>

namespace kb::test {

/// A file system that fails on demand, for "the old or the new content, never a mix" tests.
/// Changing calls are counted from 1; call number `fail_at` fails. With Death::yes every later
/// changing call fails too, as if the process had been killed there: nothing cleans up.
class FaultyFileSystem final : public sys::FileSystem {
public:
    enum class Death : std::uint8_t { no, yes };

    explicit FaultyFileSystem(sys::FileSystem& inner) : inner_{inner} {}

    void fail_at(std::size_t call, Death death) {
        calls_ = 0;
        fail_at_ = call;
        death_ = death;
    }

    /// Changing calls since fail_at() was set.
    [[nodiscard]] std::size_t calls() const { return calls_; }

    Result<std::string> read_file(const sys::Path& path, std::uint64_t max_bytes) override {
        return inner_.read_file(path, max_bytes);
    }

    Result<sys::FileInfo> stat(const sys::Path& path, sys::FollowLinks follow) override {
        return inner_.stat(path, follow);
    }

    Result<std::vector<sys::DirEntry>> list(const sys::Path& directory) override {
        return inner_.list(directory);
    }

    Result<std::string> read_link(const sys::Path& path) override { return inner_.read_link(path); }

    Result<std::unique_ptr<sys::InputFile>> open_read(const sys::Path& path) override {
        return inner_.open_read(path);
    }

    Result<std::unique_ptr<sys::OutputFile>> create(const sys::Path& path, FileMode mode) override {
        KB_TRY(step("create", path));
        KB_TRY(auto file, inner_.create(path, mode));
        return std::unique_ptr<sys::OutputFile>{
            std::make_unique<FaultyOutput>(*this, std::move(file), path)};
    }

    Result<void>
    write_atomic(const sys::Path& path, std::string_view content, FileMode mode) override {
        KB_TRY(step("write_atomic", path));
        return inner_.write_atomic(path, content, mode);
    }

    Result<void> append_durable(const sys::Path& path, std::string_view content) override {
        KB_TRY(step("append_durable", path));
        return inner_.append_durable(path, content);
    }

    Result<void>
    write_scratch(const sys::Path& path, std::string_view content, FileMode mode) override {
        KB_TRY(step("write_scratch", path));
        return inner_.write_scratch(path, content, mode);
    }

    Result<void> copy_file(const sys::Path& from, const sys::Path& to) override {
        KB_TRY(step("copy_file", to));
        return inner_.copy_file(from, to);
    }

    Result<void> make_directories(const sys::Path& path) override {
        KB_TRY(step("make_directories", path));
        return inner_.make_directories(path);
    }

    Result<void> remove_tree(const sys::Path& path) override {
        KB_TRY(step("remove_tree", path));
        return inner_.remove_tree(path);
    }

    Result<void> remove_file(const sys::Path& path) override {
        KB_TRY(step("remove_file", path));
        return inner_.remove_file(path);
    }

    Result<void> rename(const sys::Path& from, const sys::Path& to) override {
        KB_TRY(step("rename", to));
        return inner_.rename(from, to);
    }

    Result<void> exchange(const sys::Path& a, const sys::Path& b) override {
        KB_TRY(step("exchange", b));
        return inner_.exchange(a, b);
    }

    Result<void> symlink(std::string_view target, const sys::Path& link) override {
        KB_TRY(step("symlink", link));
        return inner_.symlink(target, link);
    }

    Result<void> hard_link(const sys::Path& from, const sys::Path& to) override {
        KB_TRY(step("hard_link", to));
        return inner_.hard_link(from, to);
    }

    Result<void> set_mtime(const sys::Path& path, std::int64_t seconds) override {
        KB_TRY(step("set_mtime", path));
        return inner_.set_mtime(path, seconds);
    }

    Result<void> set_mode(const sys::Path& path, std::uint32_t mode) override {
        KB_TRY(step("set_mode", path));
        return inner_.set_mode(path, mode);
    }

    Result<void> sync_directory(const sys::Path& directory) override {
        KB_TRY(step("sync_directory", directory));
        return inner_.sync_directory(directory);
    }

    Result<void> sync_file_system(const sys::Path& path) override {
        KB_TRY(step("sync_file_system", path));
        return inner_.sync_file_system(path);
    }

private:
    class FaultyOutput final : public sys::OutputFile {
    public:
        FaultyOutput(FaultyFileSystem& owner,
                     std::unique_ptr<sys::OutputFile> inner,
                     sys::Path path)
            : owner_{owner}, inner_{std::move(inner)}, path_{std::move(path)} {}

        Result<void> write(std::string_view bytes) override {
            KB_TRY(owner_.step("write", path_));
            return inner_->write(bytes);
        }

        Result<void> sync() override {
            KB_TRY(owner_.step("sync", path_));
            return inner_->sync();
        }

    private:
        FaultyFileSystem& owner_;
        std::unique_ptr<sys::OutputFile> inner_;
        sys::Path path_;
    };

    Result<void> step(std::string_view call, const sys::Path& path) {
        ++calls_;
        if (fail_at_ != 0 && (calls_ == fail_at_ || (death_ == Death::yes && calls_ > fail_at_))) {
            return Error{.code = ErrorCode::denied,
                         .message = "injected fault in " + std::string{call} + " of '" +
                                    path.string() + "'"};
        }
        return {};
    }

    sys::FileSystem& inner_;
    std::size_t calls_ = 0;
    std::size_t fail_at_ = 0;
    Death death_ = Death::no;
};

} // namespace kb::test
