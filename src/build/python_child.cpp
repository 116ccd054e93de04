// SPDX-License-Identifier: Apache-2.0
#include "build/python_child.hpp"

#include "base/text.hpp"

#include <vector>

namespace kb::build {

namespace {

// '-c' puts "" in front; '-P', which does not, came with Python 3.11, and '-I' would hide a torch
// of the user. 'sys' is part of the program, so importing it reads no file.
constexpr std::string_view kWithoutCurrentDirectory =
    "import sys\nsys.path[:] = [p for p in sys.path if p not in ('', '.')]\n";

bool is_current_directory(std::string_view entry) {
    const sys::Path path = sys::Path{entry}.lexically_normal();
    return path.empty() || path == "." || path == "./";
}

/// Python makes "" and "." absolute before it looks for 'sitecustomize', long before our first
/// line: PYTHONPATH="$PYTHONPATH:/mine" has an empty entry when nothing was set.
void clean_python_path(sys::EnvironmentMap& environment) {
    const auto variable = environment.find("PYTHONPATH");
    if (variable == environment.end()) {
        return;
    }
    std::vector<std::string> kept;
    for (const std::string_view entry : split(variable->second, ':')) {
        if (!is_current_directory(entry)) {
            kept.emplace_back(entry);
        }
    }
    if (kept.empty()) {
        environment.erase(variable);
    } else {
        variable->second = join(kept, ":");
    }
}

} // namespace

sys::ProcessSpec python_child(const std::string& python,
                              std::string_view program,
                              const sys::EnvironmentMap& environment) {
    sys::EnvironmentMap cleaned = environment;
    clean_python_path(cleaned);
    std::string whole{kWithoutCurrentDirectory};
    whole += program;
    return {.argv = {python, "-B", "-c", std::move(whole)}, .environment = std::move(cleaned)};
}

} // namespace kb::build
