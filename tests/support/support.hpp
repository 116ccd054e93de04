// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace kb::test {

/// A new empty directory, removed with its content at the end of the scope.
class TempDir {
public:
    TempDir();
    ~TempDir();
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const {
        return path_ / name;
    }

private:
    std::filesystem::path path_;
};

/// Whole file as text; the test fails when it cannot be read.
std::string read_text(const std::filesystem::path& path);
/// Writes the file and makes its parent directories.
void write_text(const std::filesystem::path& path, std::string_view text);
/// Root of the source tree.
std::filesystem::path source_dir();
/// Compares `actual` with tests/golden/<name>. With KB_TEST_ACCEPT=1 rewrites the file and prints
/// `SKIPPED:`, so that an accident is not green.
void golden(std::string_view name, std::string_view actual);

} // namespace kb::test
