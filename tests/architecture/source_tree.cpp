// SPDX-License-Identifier: Apache-2.0
#include "architecture/source_tree.hpp"

#include "base/text.hpp"
#include "support/support.hpp"

#include <algorithm>

namespace kb::test {

namespace fs = std::filesystem;

const std::map<std::string, Module>& modules() {
    static const std::map<std::string, Module> kModules = [] {
        std::map<std::string, Module> out;
        const std::string text = read_text(KB_MODULES_FILE);
        for (const std::string_view line : split(text, '\n')) {
            const auto fields = split(line, '|');
            if (fields.size() != 3) {
                continue;
            }
            Module module{.name = std::string{fields[0]}, .is_pure = fields[1] == "TRUE"};
            for (const std::string_view dep : split(fields[2], ',')) {
                if (!dep.empty()) {
                    module.depends.insert(std::string{dep});
                }
            }
            out.emplace(module.name, module);
        }
        return out;
    }();
    return kModules;
}

const std::vector<SourceFile>& sources() {
    static const std::vector<SourceFile> kSources = [] {
        std::vector<SourceFile> out;
        const fs::path root = source_dir() / "src";
        for (const auto& entry : fs::recursive_directory_iterator{root}) {
            const fs::path& path = entry.path();
            if (!entry.is_regular_file() ||
                (path.extension() != ".cpp" && path.extension() != ".hpp")) {
                continue;
            }
            const fs::path relative = fs::relative(path, root);
            SourceFile file{.path = path};
            if (std::distance(relative.begin(), relative.end()) > 1) {
                file.module = relative.begin()->string();
            }
            file.is_test = path.stem().string().ends_with("_test");
            file.is_header = path.extension() == ".hpp";
            const std::string text = read_text(path);
            for (const std::string_view line : split(text, '\n')) {
                file.lines.emplace_back(line);
            }
            out.push_back(std::move(file));
        }
        std::ranges::sort(out, {}, &SourceFile::path);
        return out;
    }();
    return kSources;
}

std::string shown(const SourceFile& file) {
    return fs::relative(file.path, source_dir()).string();
}

} // namespace kb::test
