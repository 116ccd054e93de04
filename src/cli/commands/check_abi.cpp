// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostics.hpp"
#include "base/text.hpp"
#include "build/inspect.hpp"
#include "check/check.hpp"
#include "check/policy.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/variants.hpp"
#include "cli/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Reads every shared library of the finished variants in DIR (build/, result/ or DIR itself;
a single library is fine too) and compares it with what the variant promises: symbol versions of
the manylinux policy, Python's limited API, torch's stable ABI, needed libraries, executable stack
and search paths, paths of the building machine, device code for the promised architectures. Stripped libraries are read as well.
What could not be looked at is told as 'not checked' and counts as failed. Writes nothing.

What a project suppresses in kernel-builder.toml is told and does not count.

Exit codes: 0 everything passed, 1 a finding or a refused look, 2 usage, 3 kernel-builder.toml.

Examples:
  kernel-builder check-abi
  kernel-builder check-abi build/torch-stable-abi211-cpu-x86_64-linux --manylinux manylinux_2_34
  kernel-builder check-abi ./libmine.so --torch-stable-abi 2.11 --format sarif)";

struct CheckAbiOptions {
    std::string directory = ".";
    std::string manylinux = "manylinux_2_28";
    std::string python_abi = "3.9";
    std::optional<std::string> torch_stable_abi{};
    std::optional<std::string> macos{};
    std::vector<std::string> allow_unchecked{};
    std::vector<std::string> allow_needed{};
    std::vector<std::string> only{};
    std::string format = "text";
    bool json = false;
};

struct CheckAbiRequest {
    std::string manylinux{};
    Version python_abi{};
    std::optional<Version> torch_stable_abi{};
    std::optional<Version> macos{};
    std::vector<std::string> allow_unchecked{};
    std::vector<std::string> allow_needed{};
    std::vector<std::string> only{};
    std::vector<check::Suppression> suppressions{};
    std::vector<std::string> machine_places{};

    [[nodiscard]] bool wants(std::string_view check) const {
        return only.empty() || std::ranges::find(only, check) != only.end();
    }
};

void usage_problem(Terminal& terminal, const std::string& message, std::string_view note) {
    terminal.err(fmt::format("error: {}\n", message));
    if (!note.empty()) {
        terminal.err(fmt::format("note: {}\n", note));
    }
}

bool parse_option(std::string_view option,
                  const std::optional<std::string>& text,
                  std::optional<Version>& out,
                  Terminal& terminal) {
    if (!text) {
        return true;
    }
    out = Version::parse(*text);
    if (!out) {
        usage_problem(terminal,
                      fmt::format("'{}' is no version for {}", escape_control(*text), option),
                      "versions are numbers with dots, as '3.9'");
    }
    return out.has_value();
}

bool check_policy_name(const std::string& name, Terminal& terminal) {
    if (name.empty() || check::find_manylinux(name, "x86_64")) {
        return true;
    }
    const auto known = check::manylinux_names();
    const std::vector<std::string> note = suggestion_note(name, known);
    usage_problem(terminal,
                  fmt::format("no manylinux policy is called '{}'", escape_control(name)),
                  note.empty() ? fmt::format("the newest is '{}'", known.back()) : note.front());
    return false;
}

std::optional<CheckAbiRequest> resolve(const CheckAbiOptions& options, Terminal& terminal) {
    CheckAbiRequest out{.manylinux = options.manylinux,
                        .allow_unchecked = options.allow_unchecked,
                        .allow_needed = options.allow_needed,
                        .only = options.only};
    std::optional<Version> python;
    const bool good =
        parse_option("--python-abi", options.python_abi, python, terminal) &&
        parse_option(
            "--torch-stable-abi", options.torch_stable_abi, out.torch_stable_abi, terminal) &&
        parse_option("--macos", options.macos, out.macos, terminal) &&
        check_policy_name(options.manylinux, terminal) &&
        are_checks(options.allow_unchecked, {}, terminal) && are_checks(options.only, {}, terminal);
    if (!good) {
        return std::nullopt;
    }
    out.python_abi = *python;
    return out;
}

check::Report check_libraries(const CheckAbiRequest& request,
                              const std::string& name,
                              std::vector<check::Library> libraries,
                              const package::Metadata* metadata) {
    check::CheckInput input{.variant = name,
                            .libraries = std::move(libraries),
                            .promise = build::promise_of(name, metadata),
                            .allow_unchecked = request.allow_unchecked,
                            .only = request.only,
                            .suppressions = request.suppressions,
                            .machine_places = request.machine_places};
    input.promise.manylinux = request.manylinux;
    input.promise.python_abi = request.python_abi;
    input.promise.allowed_needed = request.allow_needed;
    if (request.torch_stable_abi) {
        input.promise.torch_stable_abi = request.torch_stable_abi;
    }
    if (request.macos) {
        input.promise.macos = request.macos;
    }
    return build::run_checks(std::move(input));
}

build::InspectOptions inspection_for(const CheckAbiRequest& request) {
    using Paths = build::InspectOptions::Paths;
    return {.threads = std::max(1U, std::thread::hardware_concurrency()),
            .paths = request.wants("host-paths") ? Paths::find : Paths::skip,
            .machine_places = request.machine_places};
}

/// A report that says why there is none.
check::Report unread(std::string variant, const Error& error) {
    return {.variant = std::move(variant),
            .verdicts = {{.check = "read", .reason = escape_control(error.to_text())}}};
}

check::Report check_variant(const CheckAbiRequest& request,
                            const project::VariantDir& variant,
                            const Services& services) {
    auto libraries = build::inspect_libraries(services.fs, variant.path, inspection_for(request));
    if (!libraries) {
        return unread(variant.name, libraries.error());
    }
    const auto metadata = project::read_metadata(services.fs, variant);
    if (!metadata) {
        return unread(variant.name, metadata.error());
    }
    return check_libraries(request, variant.name, std::move(*libraries), &*metadata);
}

check::Report check_file(const CheckAbiRequest& request, const sys::Path& path) {
    std::vector<check::Library> libraries(1);
    libraries[0].path = path.filename().string();
    auto object = build::inspect_file(path, inspection_for(request));
    if (object) {
        libraries[0].object = std::move(*object);
    } else {
        libraries[0].unread_reason = object.error().to_text();
    }
    return check_libraries(request, path.filename().string(), std::move(libraries), nullptr);
}

class CheckAbi final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "check-abi"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Prove that built libraries load wherever the variant promises";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {
            {"DIR", "", "kernel, build or variant directory, or a library", &options_.directory},
            {"-m,--manylinux", "POLICY", "symbols and libraries allowed", &options_.manylinux},
            {"-p,--python-abi", "V", "limited API of Python", &options_.python_abi},
            {"--torch-stable-abi",
             "V",
             "target of torch's stable ABI (default: the variant's name)",
             &options_.torch_stable_abi},
            {"--macos", "V", "oldest macOS (default: 15.0, Metal 26.0)", &options_.macos},
            {"--allow-needed", "LIB", "a soname that may be needed", &options_.allow_needed},
            {"--allow-unchecked",
             "ID",
             "a check that may say 'not checked'",
             &options_.allow_unchecked},
            {"--only", "ID", "run this check, and no other that is not named so", &options_.only},
            {"--format", "FORMAT", "text, json, sarif or junit", &options_.format},
            {"--json", "", "the report as JSON, like --format json", &options_.json}};
    }

    ExitCode run(const Services& services) override {
        auto request = resolve(options_, services.terminal);
        const auto format =
            parse_report_format(options_.json ? "json" : options_.format, services.terminal);
        if (!request || !format) {
            return ExitCode::usage;
        }
        auto suppressions = find_suppressions(options_.directory, services);
        if (!suppressions) {
            return ExitCode::configuration;
        }
        request->suppressions = *std::move(suppressions);
        request->machine_places = find_machine_places(options_.directory, services);
        std::vector<check::Report> reports;
        if (const ExitCode code = look(*request, services, reports); code != ExitCode::ok) {
            return code;
        }
        render_reports(reports, *format, services.terminal);
        return conclude(reports, services.terminal);
    }

private:
    [[nodiscard]] ExitCode look(const CheckAbiRequest& request,
                                const Services& services,
                                std::vector<check::Report>& reports) const {
        const sys::Path path = resolve_directory(options_.directory, services);
        const auto info = services.fs.stat(path);
        if (info && info->type == sys::FileType::regular) {
            reports.push_back(check_file(request, path));
            return ExitCode::ok;
        }
        const auto found = find_variants(options_.directory, services);
        if (!found) {
            return found.code();
        }
        for (const project::VariantDir& variant : found->variants) {
            reports.push_back(check_variant(request, variant, services));
        }
        return ExitCode::ok;
    }

    CheckAbiOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_check_abi() {
    return std::make_unique<CheckAbi>();
}

} // namespace kb::cli
