// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/variants.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"
#include "package/metadata.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Computes the SHA-256 of every file of each finished variant in DIR and writes it as 'digest'
into its metadata.json, in place and atomically; keys that we do not know stay. A variant whose
digest is true already is left alone. Use it after a change that was meant: 'verify' tells what
differs. A signature over metadata.json no longer holds after a change.

Exit codes: 0 done, 1 a variant could not be read or written.

Examples:
  kernel-builder hash
  kernel-builder hash --dry-run)";

struct HashOptions {
    std::string directory = ".";
    bool dry_run = false;
    bool json = false;
};

enum class Sealing : std::uint8_t { unchanged, sealed };

struct SealedVariant {
    std::string variant{};
    Sealing state = Sealing::unchanged;
    std::size_t files = 0;
};

Result<SealedVariant>
seal(const project::VariantDir& variant, const HashOptions& options, sys::FileSystem& fs) {
    KB_TRY(package::Package package, project::read_package(fs, variant));
    package::PackageDigest digest = package::compute_digest(package.files);
    SealedVariant out{.variant = variant.name, .files = digest.files.size()};
    if (package.metadata.digest == digest) {
        return out;
    }
    out.state = Sealing::sealed;
    package.metadata.digest = std::move(digest);
    if (!options.dry_run) {
        KB_TRY(fs.write_atomic(variant.path / "metadata.json",
                               package::write_metadata(package.metadata),
                               FileMode::regular));
    }
    return out;
}

class Hash final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "hash"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Write the digest of every file into metadata.json";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"DIR", "", "kernel, build or variant directory", &options_.directory},
                {"--dry-run", "", "say what would change, write nothing", &options_.dry_run},
                {"--json", "", "the result as JSON", &options_.json}};
    }

    ExitCode run(const Services& services) override {
        const auto found = find_variants(options_.directory, services);
        if (!found) {
            return found.code();
        }
        document::Node variants = document::Node::array();
        ExitCode code = ExitCode::ok;
        for (const project::VariantDir& variant : found->variants) {
            auto sealed = seal(variant, options_, services.fs);
            if (!sealed) {
                render_error(
                    std::move(sealed).context(fmt::format("variant '{}'", variant.name)).error(),
                    services.terminal);
                code = ExitCode::failed;
                continue;
            }
            variants.push(report(*sealed, services.terminal));
        }
        if (options_.json) {
            services.terminal.out(document::write_json(document::Node::table(
                {{"schema", "kernel-builder/hash/1"}, {"variants", std::move(variants)}})));
        }
        return code;
    }

private:
    [[nodiscard]] document::Node report(const SealedVariant& sealed, Terminal& terminal) const {
        const bool changed = sealed.state == Sealing::sealed;
        const std::string_view state =
            changed ? (options_.dry_run ? "would change" : "sealed") : "unchanged";
        if (!options_.json) {
            terminal.out(fmt::format("{}: {} ({})\n",
                                     escape_control(sealed.variant),
                                     state,
                                     counted(sealed.files, "file")));
        }
        return document::Node::table({{"name", sealed.variant},
                                      {"changed", changed},
                                      {"files", static_cast<std::uint64_t>(sealed.files)}});
    }

    HashOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_hash() {
    return std::make_unique<Hash>();
}

} // namespace kb::cli
