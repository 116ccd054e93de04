// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kb::generate {

using Value = std::variant<std::string, bool, std::vector<std::string>>;
using Values = std::map<std::string, Value, std::less<>>;

/// Fills a template: `{{ name }}`, `{{ name | filter }}`, `{% if a and not b %}` ... `{% elif %}`
/// `{% else %}` `{% endif %}`, `{% for x in list %}` ... `{% endfor %}`, `{# comment #}`. The line
/// end after a block tag or comment is dropped. A name without a value is empty, false and an empty
/// list. Every mistake is reported with its place ("template-syntax"); nothing is returned then.
[[nodiscard]] std::optional<std::string>
render(std::string_view text, const Values& values, const Origin& origin, Diagnostics& diagnostics);

/// The embedded file templates/<path>, filled; a mistake in it, or a name without a value, is our
/// bug.
[[nodiscard]] std::string render_embedded(std::string_view path, const Values& values);
/// The embedded file templates/<path> as it is.
[[nodiscard]] std::string_view embedded_text(std::string_view path);

} // namespace kb::generate
