// SPDX-License-Identifier: Apache-2.0
#include "support/support.hpp"

#include "support/catch.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace kb::test {

namespace fs = std::filesystem;

TempDir::TempDir() {
    std::string pattern = (fs::temp_directory_path() / "kb-test-XXXXXX").string();
    const char* made = ::mkdtemp(pattern.data());
    REQUIRE(made != nullptr);
    path_ = made;
}

TempDir::~TempDir() {
    std::error_code ignored;
    // Trees of the store are read-only on purpose: make them removable first.
    for (fs::recursive_directory_iterator it{path_, ignored}, end; it != end;
         it.increment(ignored)) {
        if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
            fs::permissions(it->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
        }
    }
    fs::remove_all(path_, ignored);
}

std::string read_text(const fs::path& path) {
    const std::ifstream in{path, std::ios::binary};
    INFO("reading " << path.string());
    REQUIRE(in.good());
    std::ostringstream out;
    out << in.rdbuf();
    return std::move(out).str();
}

void write_text(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    std::ofstream out{path, std::ios::binary | std::ios::trunc};
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    INFO("writing " << path.string());
    REQUIRE(out.good());
}

fs::path source_dir() {
    return KB_SOURCE_DIR;
}

void golden(std::string_view name, std::string_view actual) {
    const fs::path path = source_dir() / "tests" / "golden" / name;
    if (const char* accept = std::getenv("KB_TEST_ACCEPT"); accept != nullptr && *accept == '1') {
        write_text(path, actual);
        std::printf("SKIPPED: accepted %s\n", path.c_str());
        return;
    }
    INFO("golden file " << path.string() << " (KB_TEST_ACCEPT=1 rewrites it)");
    CHECK(read_text(path) == actual);
}

} // namespace kb::test
