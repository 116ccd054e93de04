// SPDX-License-Identifier: Apache-2.0
#include "build/learnt.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace kb::build {

namespace {

constexpr std::string_view kLinkClass = "link";
/// Averages follow a machine that changed.
constexpr std::uint64_t kMemory = 20;
constexpr std::uint64_t kMiB = 1UL << 20U;

// Before anything ran: g++ 12 and nvcc 13.0 on two cores, 2026-11: a binding with torch's stable
// ABI 3 s and 150 MB, torch-free C++ 1.5 s and 100 MB, CUDA 4 s an architecture and 330 MB.
Cost guess(const plan::Tu& tu) {
    if (tu.kind != backend::SourceKind::cxx) {
        return {.peak_bytes = 330 * kMiB, .cpu_seconds = 4, .bytes = kMiB / 4, .runs = 0};
    }
    return tu.torch.empty()
               ? Cost{.peak_bytes = 100 * kMiB, .cpu_seconds = 1.5, .bytes = kMiB / 16, .runs = 0}
               : Cost{.peak_bytes = 150 * kMiB, .cpu_seconds = 3, .bytes = kMiB / 8, .runs = 0};
}

constexpr Cost kLinkGuess{
    .peak_bytes = 60 * kMiB, .cpu_seconds = 0.3, .bytes = kMiB / 2, .runs = 0};

/// Device compilations of a unit; time and size grow with them.
double parts(const plan::Tu& tu) {
    return std::max<double>(1, static_cast<double>(tu.archs.size()));
}

void average_in(Cost& average, const Cost& run) {
    const auto before = static_cast<double>(std::min(average.runs, kMemory));
    const auto mix = [&](double old, double fresh) {
        return (old * before + fresh) / (before + 1);
    };
    average.cpu_seconds = mix(average.cpu_seconds, run.cpu_seconds);
    average.peak_bytes = static_cast<std::uint64_t>(
        mix(static_cast<double>(average.peak_bytes), static_cast<double>(run.peak_bytes)));
    average.bytes = static_cast<std::uint64_t>(
        mix(static_cast<double>(average.bytes), static_cast<double>(run.bytes)));
    ++average.runs;
}

void learn(std::string_view class_name, const Cost& run, CostTable& classes) {
    const auto found =
        classes.try_emplace(std::string{class_name}, Cost{.peak_bytes = 0, .runs = 0});
    average_in(found.first->second, run);
}

std::uint64_t scaled(std::uint64_t bytes, double by) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * by);
}

} // namespace

CostTable parse_costs(std::string_view text) {
    CostTable out;
    for (const std::string_view line : split(text, '\n')) {
        const std::vector<std::string_view> fields = split(line, '\t');
        std::array<std::uint64_t, 4> numbers{0, 0, 0, 1};
        bool good = fields.size() == 2 || fields.size() == 5;
        for (std::size_t i = 1; good && i < fields.size(); ++i) {
            const auto number = parse_unsigned(fields[i]);
            good = number.has_value();
            numbers[i - 1] = number.value_or(0);
        }
        if (good) {
            out.insert_or_assign(std::string{fields[0]},
                                 Cost{.peak_bytes = numbers[0],
                                      .cpu_seconds = static_cast<double>(numbers[1]) / 1000,
                                      .bytes = numbers[2],
                                      .runs = numbers[3]});
        }
    }
    return out;
}

std::string write_costs(const CostTable& table) {
    std::string out;
    for (const auto& [key, cost] : table) {
        out += fmt::format("{}\t{}\t{}\t{}\t{}\n",
                           key,
                           cost.peak_bytes,
                           static_cast<std::uint64_t>(cost.cpu_seconds * 1000),
                           cost.bytes,
                           cost.runs);
    }
    return out;
}

std::string step_key(const plan::Tu& tu) {
    return fmt::format(
        "{} {}{}", backend::to_text(tu.kind), tu.source.text(), tu.torch.empty() ? "" : " torch");
}

std::string link_key(const plan::PlannedVariant& variant) {
    return fmt::format("{} {}", kLinkClass, variant.name.text());
}

std::string class_key(const plan::Tu& tu) {
    return fmt::format("{}{}", backend::to_text(tu.kind), tu.torch.empty() ? "" : " torch");
}

void learn_step(const plan::Tu& tu,
                const LaunchRecord& run,
                std::uint64_t bytes,
                CostTable& steps,
                CostTable& classes) {
    // Of one architecture, so that a list that grew or shrank is foreseen too.
    const double by = 1 / parts(tu);
    const Cost cost{.peak_bytes = run.peak_bytes,
                    .cpu_seconds = (run.user_seconds + run.system_seconds) * by,
                    .bytes = scaled(bytes, by)};
    steps.insert_or_assign(step_key(tu), cost);
    learn(class_key(tu), cost, classes);
}

void learn_link(const plan::PlannedVariant& variant,
                const Cost& cost,
                CostTable& steps,
                CostTable& classes) {
    steps.insert_or_assign(link_key(variant), cost);
    learn(kLinkClass, cost, classes);
}

Cost cost_of(const plan::Tu& tu, const CostTable& steps, const CostTable& classes) {
    Cost cost = guess(tu);
    if (const auto step = steps.find(step_key(tu)); step != steps.end()) {
        cost = step->second;
    } else if (const auto known = classes.find(class_key(tu)); known != classes.end()) {
        cost = known->second;
        cost.runs = 0;
    }
    cost.cpu_seconds *= parts(tu);
    cost.bytes = scaled(cost.bytes, parts(tu));
    return cost;
}

Cost cost_of(const plan::PlannedVariant& variant,
             const CostTable& steps,
             const CostTable& classes) {
    if (const auto step = steps.find(link_key(variant)); step != steps.end()) {
        return step->second;
    }
    const auto known = classes.find(std::string{kLinkClass});
    Cost cost = known == classes.end() ? kLinkGuess : known->second;
    cost.runs = 0;
    return cost;
}

CostTable load_costs(sys::FileSystem& fs, const sys::Path& path) {
    const Result<std::string> text = fs.read_file(path);
    return text ? parse_costs(*text) : CostTable{};
}

Result<void> save_costs(sys::FileSystem& fs, const sys::Path& path, const CostTable& table) {
    KB_TRY(fs.make_directories(path.parent_path()));
    return fs.write_atomic(path, write_costs(table), FileMode::regular);
}

// "<start ms>\t<end ms>\t<mtime>\t<output>\t<hash>"; later lines replace earlier ones.
std::map<std::string, double> parse_ninja_log(std::string_view text) {
    std::map<std::string, double> out;
    for (const std::string_view line : split(text, '\n')) {
        const std::vector<std::string_view> fields = split(line, '\t');
        if (fields.size() != 5) {
            continue;
        }
        const auto start = parse_unsigned(fields[0]);
        const auto end = parse_unsigned(fields[1]);
        if (start && end && *end >= *start) {
            out.insert_or_assign(std::string{fields[3]}, static_cast<double>(*end - *start) / 1000);
        }
    }
    return out;
}

} // namespace kb::build
