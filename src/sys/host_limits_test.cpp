// SPDX-License-Identifier: Apache-2.0
#include "sys/host_limits.hpp"

#include "support/catch.hpp"

#include <map>

using namespace kb;
using namespace kb::sys;

namespace {

/// Only what read_host_limits() asks for; everything else is an error.
class FakeCgroups final : public FileSystem {
public:
    explicit FakeCgroups(std::map<std::string, std::string> files) : files_{std::move(files)} {}

    Result<std::string> read_file(const Path& path, std::uint64_t) override {
        const auto found = files_.find(path.string());
        if (found == files_.end()) {
            return Error{.code = ErrorCode::not_found, .message = path.string()};
        }
        return found->second;
    }

    Result<FileInfo> stat(const Path&, FollowLinks) override { return none(); }

    Result<std::vector<DirEntry>> list(const Path&) override { return none(); }

    Result<std::string> read_link(const Path&) override { return none(); }

    Result<std::unique_ptr<InputFile>> open_read(const Path&) override { return none(); }

    Result<std::unique_ptr<OutputFile>> create(const Path&, FileMode) override { return none(); }

    Result<void> write_atomic(const Path&, std::string_view, FileMode) override { return none(); }

    Result<void> append_durable(const Path&, std::string_view) override { return none(); }

    Result<void> write_scratch(const Path&, std::string_view, FileMode) override { return none(); }

    Result<void> copy_file(const Path&, const Path&) override { return none(); }

    Result<void> make_directories(const Path&) override { return none(); }

    Result<void> remove_tree(const Path&) override { return none(); }

    Result<void> remove_file(const Path&) override { return none(); }

    Result<void> rename(const Path&, const Path&) override { return none(); }

    Result<void> exchange(const Path&, const Path&) override { return none(); }

    Result<void> symlink(std::string_view, const Path&) override { return none(); }

    Result<void> hard_link(const Path&, const Path&) override { return none(); }

    Result<void> set_mtime(const Path&, std::int64_t) override { return none(); }

    Result<void> set_mode(const Path&, std::uint32_t) override { return none(); }

    Result<void> sync_directory(const Path&) override { return none(); }

    Result<void> sync_file_system(const Path&) override { return none(); }

private:
    static Error none() { return Error{.code = ErrorCode::unsupported, .message = "not faked"}; }

    std::map<std::string, std::string> files_;
};

} // namespace

TEST_CASE("memory and cpu limits of both cgroup versions hold, also those of ancestors",
          "[sys][limits]") {
    const std::string mib_64 = "67108864\n";
    const auto [name, files, memory] =
        GENERATE_COPY(table<std::string, std::map<std::string, std::string>, std::uint64_t>({
            {"v2",
             {{"/proc/self/cgroup", "0::/a/b\n"},
              {"/sys/fs/cgroup/a/b/memory.max", mib_64},
              {"/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"}},
             64UL << 20U},
            {"v2, limit on the parent",
             {{"/proc/self/cgroup", "0::/a/b\n"},
              {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
              {"/sys/fs/cgroup/a/memory.max", mib_64},
              {"/sys/fs/cgroup/a/cpu.max", "100000 100000\n"}},
             64UL << 20U},
            {"v1",
             {{"/proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/x\n"},
              {"/sys/fs/cgroup/memory/x/memory.limit_in_bytes", mib_64},
              {"/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "100000\n"},
              {"/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"}},
             64UL << 20U},
        }));
    INFO(name);
    FakeCgroups fs{files};
    const HostLimits limits = read_host_limits(fs);
    CHECK(limits.memory_bytes == memory);
    CHECK(limits.cpus == 1);
}

TEST_CASE("without limits the machine counts", "[sys][limits]") {
    FakeCgroups fs{{{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "max\n"}}};
    const HostLimits limits = read_host_limits(fs);
    CHECK(limits.cpus >= 1);
    CHECK(limits.memory_bytes > (64UL << 20U));
}
