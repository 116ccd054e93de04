// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kb::test {

struct Module {
    std::string name{};
    bool is_pure = false;
    std::set<std::string> depends{};
};

struct SourceFile {
    std::filesystem::path path{};
    std::string module{}; ///< first folder below src/, "" for main.cpp
    std::vector<std::string> lines{};
    bool is_test = false;
    bool is_header = false;
};

/// The kb_module() table, by name.
const std::map<std::string, Module>& modules();
/// Every .cpp and .hpp below src/.
const std::vector<SourceFile>& sources();
/// Path below the source tree, for messages.
std::string shown(const SourceFile& file);

} // namespace kb::test
