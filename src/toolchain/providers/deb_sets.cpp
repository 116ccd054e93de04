// SPDX-License-Identifier: Apache-2.0
#include "toolchain/providers/deb_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::toolchain {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kGcc12{
    "bash"sv,        "binutils"sv,         "binutils-common"sv, "binutils-x86-64-linux-gnu"sv,
    "ccache"sv,      "coreutils"sv,        "cpp-12"sv,          "dash"sv,
    "g++-12"sv,      "gcc-12"sv,           "libacl1"sv,         "libatomic1"sv,
    "libattr1"sv,    "libbinutils"sv,      "libc6"sv,           "libc6-dev"sv,
    "libcc1-0"sv,    "libcrypt-dev"sv,     "libcrypt1"sv,       "libctf-nobfd0"sv,
    "libctf0"sv,     "libgcc-12-dev"sv,    "libgcc-s1"sv,       "libgmp10"sv,
    "libgomp1"sv,    "libhiredis0.14"sv,   "libisl23"sv,        "libjansson4"sv,
    "libmpc3"sv,     "libmpfr6"sv,         "libpcre2-8-0"sv,    "libquadmath0"sv,
    "libselinux1"sv, "libstdc++-12-dev"sv, "libstdc++6"sv,      "libtinfo6"sv,
    "libzstd1"sv,    "linux-libc-dev"sv,   "ninja-build"sv,     "sed"sv,
    "zlib1g"sv,
};
constexpr std::array kPython311{"libpython3.11-dev"sv};
// Beside g++ 12, whose binutils and libraries it uses: host compiler of nvcc 11.
constexpr std::array kHostGcc11{
    "cpp-11"sv, "g++-11"sv, "gcc-11"sv, "libgcc-11-dev"sv, "libstdc++-11-dev"sv};
// Driver and front end only; headers and the runtime come from wheels, as these packages would
// bring two gigabytes of libraries.
constexpr std::array kNvcc{"nvidia-cuda-toolkit"sv};

// Beside g++ 12, whose libraries it uses: the same for aarch64, with its C library.
constexpr std::array kCrossGcc12{"binutils-aarch64-linux-gnu"sv,
                                 "cpp-12-aarch64-linux-gnu"sv,
                                 "g++-12-aarch64-linux-gnu"sv,
                                 "gcc-12-aarch64-linux-gnu"sv,
                                 "libatomic1-arm64-cross"sv,
                                 "libc6-arm64-cross"sv,
                                 "libc6-dev-arm64-cross"sv,
                                 "libgcc-12-dev-arm64-cross"sv,
                                 "libgcc-s1-arm64-cross"sv,
                                 "libgomp1-arm64-cross"sv,
                                 "libstdc++-12-dev-arm64-cross"sv,
                                 "libstdc++6-arm64-cross"sv,
                                 "linux-libc-dev-arm64-cross"sv};
// The compiler that hipcc 5.7 calls, with its own C library: it is newer than that of Debian 12.
constexpr std::array kRocm57{"clang-17"sv,
                             "clang-tools-17"sv,
                             "libamdhip64-dev"sv,
                             "libbsd0"sv,
                             "libc6"sv,
                             "libclang-common-17-dev"sv,
                             "libclang-cpp17t64"sv,
                             "libedit2"sv,
                             "libffi8"sv,
                             "libgcc-s1"sv,
                             "libllvm17t64"sv,
                             "liblzma5"sv,
                             "libmd0"sv,
                             "libstdc++6"sv,
                             "libtinfo6"sv,
                             "libxml2"sv,
                             "libz3-4"sv,
                             "libzstd1"sv,
                             "lld-17"sv,
                             "rocm-device-libs-17"sv,
                             "zlib1g"sv};

constexpr std::array<DebSet, 7> kSets{DebSet{"gcc", "12", kGcc12},
                                      DebSet{"python-headers", "3.11", kPython311},
                                      DebSet{"cross-gcc-aarch64", "12", kCrossGcc12},
                                      DebSet{"host-gcc", "11", kHostGcc11},
                                      DebSet{"cuda-nvcc", "11.8", kNvcc, "bookworm", "non-free"},
                                      DebSet{"cuda-nvcc", "12.4", kNvcc, "trixie", "non-free"},
                                      DebSet{"rocm", "5.7", kRocm57, "trixie", "main"}};

} // namespace

std::string DebSet::id() const {
    return fmt::format("{}-{}", name, version);
}

const DebSet* find_deb_set(const backend::Requirement& requirement) {
    const auto* found = std::ranges::find_if(kSets, [&](const DebSet& set) {
        return set.name == requirement.name && set.version == requirement.version;
    });
    return found == kSets.end() ? nullptr : found;
}

const DebSet* find_deb_set(std::string_view id) {
    const auto* found =
        std::ranges::find_if(kSets, [&](const DebSet& set) { return set.id() == id; });
    return found == kSets.end() ? nullptr : found;
}

} // namespace kb::toolchain
