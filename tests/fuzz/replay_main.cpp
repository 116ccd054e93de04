// SPDX-License-Identifier: Apache-2.0
// Feeds every file of the given folders to a fuzz target, and all of its prefixes up to 4 KiB, so
// that a truncated input is always among them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kPrefixLimit = 4096;

std::string slurp(const std::filesystem::path& path) {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

void feed(const std::string& text, std::size_t size) {
    // Exactly as large as the input, so that a sanitizer sees a read past the end.
    const std::vector<std::uint8_t> bytes(text.begin(),
                                          text.begin() + static_cast<std::ptrdiff_t>(size));
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

} // namespace

int main(int argc, char** argv) {
    std::size_t files = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator{argv[i]}) {
            if (!entry.is_regular_file()) {
                continue;
            }
            const std::string text = slurp(entry.path());
            for (std::size_t size = 0; size < std::min(text.size(), kPrefixLimit); ++size) {
                feed(text, size);
            }
            feed(text, text.size());
            ++files;
        }
    }
    std::printf("%zu passed, %d failed\n", files, files == 0 ? 1 : 0);
    return files == 0 ? 1 : 0;
}
