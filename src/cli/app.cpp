// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"

#include "base/diagnostics.hpp"
#include "base/text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    "Builds, proves and publishes GPU kernels for every variant of the matrix.\n"
    "\n"
    "Start:  kernel-builder init my-kernel --name me/my-kernel\n"
    "        cd my-kernel && kernel-builder build --matrix && kernel-builder upload";

template <typename... Fs>
struct Overloaded : Fs... {
    using Fs::operator()...;
};

template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

void add_option(CLI::App& app, const OptionRow& row) {
    CLI::Option* option = std::visit(
        Overloaded{[&](bool* target) { return app.add_flag(row.name, *target, row.help); },
                   [&](std::string* target) {
                       return app.add_option(row.name, *target, row.help)->capture_default_str();
                   },
                   [&](std::optional<std::string>* target) {
                       return app.add_option(row.name, *target, row.help);
                   },
                   [&](std::vector<std::string>* target) {
                       return app.add_option(row.name, *target, row.help)
                           ->allow_extra_args(!row.name.starts_with('-'));
                   },
                   [&](std::optional<std::uint64_t>* target) {
                       // "-1" would be read as a huge number, "0x10" as sixteen.
                       return app.add_option(row.name, *target, row.help)
                           ->check([](const std::string& text) {
                               return parse_unsigned(text)
                                          ? std::string{}
                                          : fmt::format("'{}' is no number from 0 on", text);
                           });
                   }},
        row.target);
    if (!row.value.empty()) {
        option->type_name(row.value);
    } else if (!std::holds_alternative<bool*>(row.target)) {
        option->type_name("");
    }
    option->required(row.required);
}

CLI::App* group_of(CLI::App& app, std::string_view group) {
    for (CLI::App* sub : app.get_subcommands({})) {
        if (sub->get_name() == group) {
            return sub;
        }
    }
    CLI::App* made = app.add_subcommand(std::string{group});
    made->require_subcommand(1);
    if (group == "registry") {
        made->description("The hub-style registry: serve it and look after it");
    } else if (group == "abi") {
        made->description("What libraries promise to those that load them");
    } else if (group == "store") {
        made->description("The toolchain store: where it is, whether it is whole, what is in it");
    } else if (group == "token") {
        made->description("Tokens of users: make, list and end them");
    }
    return made;
}

CLI::App* add_command(CLI::App& app, Command& command) {
    const std::string_view name = command.name();
    const std::size_t space = name.find(' ');
    CLI::App* parent = &app;
    std::string leaf{name};
    if (space != std::string_view::npos) {
        parent = group_of(app, name.substr(0, space));
        leaf = name.substr(space + 1);
        if (const std::size_t second = leaf.find(' '); second != std::string::npos) {
            parent = group_of(*parent, leaf.substr(0, second));
            leaf = leaf.substr(second + 1);
        }
    }
    CLI::App* sub = parent->add_subcommand(leaf, std::string{command.summary()});
    sub->footer("\n" + std::string{command.description()});
    for (const OptionRow& row : command.options()) {
        add_option(*sub, row);
    }
    if (command.is_hidden()) {
        sub->group("");
    }
    return sub;
}

/// Our own arguments, and for a command that takes the rest what stands behind the first "--".
std::pair<std::vector<std::string>, std::vector<std::string>>
split_rest(const std::vector<std::string>& arguments,
           const std::vector<std::unique_ptr<Command>>& commands) {
    const auto dashes = std::ranges::find(arguments, "--");
    const bool takes_rest = std::ranges::any_of(commands, [&arguments](const auto& command) {
        return !arguments.empty() && command->takes_rest() && command->name() == arguments.front();
    });
    if (dashes == arguments.end() || !takes_rest) {
        return {arguments, {}};
    }
    return {{arguments.begin(), dashes}, {dashes + 1, arguments.end()}};
}

/// The word of the command line that no command or option has, with the nearest that exists.
std::vector<std::string> usage_notes(const std::vector<std::string>& arguments,
                                     const std::vector<std::unique_ptr<Command>>& commands) {
    std::vector<std::string_view> names;
    names.reserve(commands.size());
    for (const auto& command : commands) {
        names.push_back(command->name());
    }
    const Command* used = nullptr;
    for (const auto& command : commands) {
        const bool whole = !arguments.empty() && command->name() == arguments[0];
        const bool pair =
            arguments.size() > 1 && command->name() == arguments[0] + " " + arguments[1];
        if (whole || pair) {
            used = command.get();
        }
    }
    if (used == nullptr && arguments.empty()) {
        return {};
    }
    if (used == nullptr) {
        const bool grouped =
            arguments.size() > 1 && std::ranges::any_of(names, [&](std::string_view name) {
                return name.starts_with(arguments[0] + " ");
            });
        return suggestion_note(grouped ? arguments[0] + " " + arguments[1] : arguments[0], names);
    }
    // options() of a const command would need a second table: the rows only point, nothing is
    // written here.
    const std::vector<OptionRow> rows = const_cast<Command*>(used)->options();
    std::vector<std::string_view> options;
    for (const OptionRow& row : rows) {
        for (const std::string_view spelling : split(row.name, ',')) {
            options.push_back(spelling);
        }
    }
    for (const std::string& argument : arguments) {
        const std::string_view word = std::string_view{argument}.substr(0, argument.find('='));
        if (word.starts_with("--") && std::ranges::find(options, word) == options.end()) {
            return suggestion_note(word, options);
        }
    }
    return {};
}

/// `problem` in words; a command that does not exist by its name, where CLI11 misses any command.
std::string message_of(const CLI::ParseError& problem,
                       const std::vector<std::string>& arguments,
                       std::size_t known) {
    const bool no_command = problem.get_name() == "RequiredError" && known < arguments.size();
    if (no_command && std::string_view{problem.what()}.find("subcommand") != std::string::npos) {
        const std::string& word = arguments[known];
        return fmt::format(
            "there is no {} '{}'", word.starts_with('-') ? "option" : "command", word);
    }
    std::string message = problem.what();
    while (message.ends_with('\n') || message.ends_with('.')) {
        message.pop_back();
    }
    return message;
}

ExitCode usage_error(const CLI::ParseError& problem,
                     const CLI::App& app,
                     const std::vector<std::string>& arguments,
                     const std::vector<std::unique_ptr<Command>>& commands,
                     const Services& services) {
    const CLI::App* deepest = &app;
    std::string name = "kernel-builder";
    std::size_t known = 0;
    while (!deepest->get_subcommands().empty()) {
        deepest = deepest->get_subcommands().front();
        name += " " + deepest->get_name();
        ++known;
    }
    services.terminal.err(
        fmt::format("error: {}\n", escape_control(message_of(problem, arguments, known))));
    for (const std::string& note : usage_notes(arguments, commands)) {
        services.terminal.err(fmt::format("note: {}\n", note));
    }
    services.terminal.err(fmt::format("note: '{} --help' explains the options\n", name));
    return ExitCode::usage;
}

} // namespace

ExitCode run(const std::vector<std::string>& arguments, const Services& services) {
    CLI::App app{std::string{kDescription}, "kernel-builder"};
    app.set_version_flag("--version", "kernel-builder " KB_VERSION);
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);

    const std::vector<std::unique_ptr<Command>> commands = make_commands();
    std::map<const CLI::App*, Command*> by_app;
    for (const auto& command : commands) {
        by_app.emplace(add_command(app, *command), command.get());
    }
    if (arguments.empty()) {
        services.terminal.out(app.help());
        return ExitCode::usage;
    }
    const auto [own, rest] = split_rest(arguments, commands);
    try {
        std::vector<std::string> reversed{own.rbegin(), own.rend()}; // CLI11 takes them last first
        app.parse(reversed);
    } catch (const CLI::CallForHelp&) {
        services.terminal.out(app.help()); // of the command that was given, with all its words
        return ExitCode::ok;
    } catch (const CLI::CallForAllHelp&) {
        services.terminal.out(app.help("", CLI::AppFormatMode::All));
        return ExitCode::ok;
    } catch (const CLI::CallForVersion&) {
        services.terminal.out("kernel-builder " KB_VERSION "\n");
        return ExitCode::ok;
    } catch (const CLI::ParseError& problem) {
        return usage_error(problem, app, arguments, commands, services);
    }
    for (const auto& [sub, command] : by_app) {
        if (sub->parsed()) {
            if (command->takes_rest()) {
                command->set_rest(rest);
            }
            return command->run(services);
        }
    }
    return ExitCode::usage;
}

} // namespace kb::cli
