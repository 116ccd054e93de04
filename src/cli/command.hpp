// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/exit_code.hpp"
#include "cli/services.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kb::cli {

/// Where an option's value goes: a member of the command's options. The type says how it is parsed.
using OptionTarget = std::variant<bool*,
                                  std::string*,
                                  std::optional<std::string>*,
                                  std::vector<std::string>*,
                                  std::optional<std::uint64_t>*>;

/// One option of a command. `name`: "--json", "-j,--jobs", or a positional "DIR". `value`:
/// placeholder in the help
/// ("NAME"), empty for a flag. A std::string target keeps its default when the option is not given
/// and shows it.
struct OptionRow {
    std::string name{};
    std::string value{};
    std::string help{};
    OptionTarget target{};
    /// A positional that must be given.
    bool required = false;
};

/// What a command may touch: nothing but its arguments; the project directory; also store, network
/// and children.
enum class Tier : std::uint8_t { nothing, project, machine };

/// One command of the program. An object is made for each run and holds its parsed options.
class Command {
public:
    virtual ~Command() = default;
    /// "build", or "registry serve" for a command of a group.
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// One line for the list of commands.
    [[nodiscard]] virtual std::string_view summary() const = 0;
    /// What it does, what it leaves behind, its exit codes, and at least one example.
    [[nodiscard]] virtual std::string_view description() const = 0;
    [[nodiscard]] virtual Tier tier() const = 0;
    /// Rows that point into this object.
    [[nodiscard]] virtual std::vector<OptionRow> options() = 0;

    /// Hidden commands are for our own children and stay out of the help.
    [[nodiscard]] virtual bool is_hidden() const { return false; }

    /// True when everything after the options belongs to another program ("testshell -- CMD ARG").
    [[nodiscard]] virtual bool takes_rest() const { return false; }

    virtual void set_rest(const std::vector<std::string>& /*arguments*/) {}

    virtual ExitCode run(const Services& services) = 0;
};

/// All commands, in the order of the help.
std::vector<std::unique_ptr<Command>> make_commands();

} // namespace kb::cli
