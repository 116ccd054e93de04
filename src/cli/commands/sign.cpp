// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/variants.hpp"
#include "cli/render.hpp"
#include "digest/signature.hpp"
#include "document/json.hpp"
#include "package/attestation.hpp"
#include "project/attestations.hpp"

#include <fmt/format.h>

#include <random>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Signs the provenance statement of each finished variant in DIR with an Ed25519 key of yours,
offline. A statement names every file of its variant and the bill of materials by digest, so one
signature covers them all. A statement that is not true of its variant is not signed. Signatures
lie beside the statements in .kernel-builder/provenance/; 'verify --key FILE.pub' judges them.

Exit codes: 0 signed, 1 a variant could not be signed, 2 usage.

Examples:
  kernel-builder sign --key ~/keys/release.key --new-key   makes it, and release.key.pub beside
  kernel-builder sign --key ~/keys/release.key             signs what is in build/

Keep the private key outside the project: nothing that is committed or published may hold it.)";

struct SignOptions {
    std::string directory = ".";
    std::string key{};
    bool new_key = false;
    bool json = false;
};

/// Nobody but the owner may read it or open it for later, from its making on; an existing file is
/// an error. A copy is made with the mode of what is copied, a new file with that of the umask.
Result<void> write_private(sys::FileSystem& fs, const sys::Path& path, std::string_view text) {
    std::random_device random;
    const sys::Path empty = fmt::format("{}.{:08x}{:08x}.tmp", path.string(), random(), random());
    KB_TRY(const auto file, fs.create(empty, FileMode::regular));
    Result<void> made = fs.set_mode(empty, 0600);
    if (made) {
        made = fs.copy_file(empty, path);
    }
    KB_TRY(fs.remove_file(empty));
    KB_TRY(made);
    Result<void> written = fs.append_durable(path, text);
    if (!written) {
        static_cast<void>(fs.remove_file(path).has_value()); // half a key
    }
    return written;
}

Result<void> make_key(sys::FileSystem& fs, const sys::Path& path) {
    KB_TRY(const digest::SigningKey key, digest::make_signing_key());
    KB_TRY(write_private(fs, path, key.private_pem));
    return fs.write_atomic(path.string() + ".pub", key.public_pem, FileMode::regular);
}

/// The key id; an Error names what was not true.
Result<std::string>
sign_one(const project::VariantDir& variant, std::string_view private_pem, sys::FileSystem& fs) {
    KB_TRY(const package::Package package, project::read_package(fs, variant));
    const sys::Path directory = project::attestation_directory(variant.path);
    Result<project::Attestations> said = project::read_attestations(fs, directory, variant.name);
    if (!said) {
        return std::move(said)
            .context("reading its statement, which 'kernel-builder build' writes")
            .error();
    }
    if (const auto uncovered = package::find_uncovered(package); !uncovered.empty()) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format(
                         "{}; {}", uncovered.front().message, uncovered.front().next_step)};
    }
    const auto findings = package::judge_statement(package, said->statement, said->sbom);
    if (!findings.empty()) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("its statement is not true: '{}' {}; build it again",
                                            findings.front().subject,
                                            findings.front().message)};
    }
    KB_TRY(const std::string signature,
           digest::sign(private_pem, package::signed_bytes(said->statement)));
    KB_TRY(const std::string public_pem, digest::public_key_of(private_pem));
    KB_TRY(std::string id, digest::key_id(public_pem));
    KB_TRY(project::write_signature(
        fs, directory, variant.name, package::write_envelope(said->statement, id, signature)));
    return id;
}

class Sign final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "sign"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Sign the provenance of finished variants with a key of yours";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"DIR", "", "kernel, build or variant directory", &options_.directory},
                {"--key", "FILE", "private key (Ed25519, PEM)", &options_.key},
                {"--new-key",
                 "",
                 "make FILE and FILE.pub instead of signing; nothing is overwritten",
                 &options_.new_key},
                {"--json", "", "the result as JSON", &options_.json}};
    }

    ExitCode run(const Services& services) override {
        if (options_.key.empty()) {
            services.terminal.err("error: which key? give it with --key FILE\nnote: "
                                  "'kernel-builder sign --key FILE --new-key' makes one\n");
            return ExitCode::usage;
        }
        const sys::Path key = services.current_directory / options_.key;
        if (options_.new_key) {
            if (const auto made = make_key(services.fs, key); !made) {
                render_error(made.error(), services.terminal);
                return ExitCode::failed;
            }
            services.terminal.out(fmt::format("{}\n{}.pub\n", key.string(), key.string()));
            return ExitCode::ok;
        }
        auto private_pem = services.fs.read_file(key, 64UL << 10U);
        if (!private_pem) {
            render_error(private_pem.error(), services.terminal);
            return ExitCode::usage;
        }
        if (auto usable = digest::public_key_of(*private_pem); !usable) {
            render_error(std::move(usable).context(fmt::format("key '{}'", key.string())).error(),
                         services.terminal);
            return ExitCode::usage;
        }
        return sign_all(*private_pem, services);
    }

private:
    ExitCode sign_all(std::string_view private_pem, const Services& services) const {
        const auto found = find_variants(options_.directory, services);
        if (!found) {
            return found.code();
        }
        document::Node variants = document::Node::array();
        ExitCode code = ExitCode::ok;
        for (const project::VariantDir& variant : found->variants) {
            auto id = sign_one(variant, private_pem, services.fs);
            if (!id) {
                render_error(
                    std::move(id).context(fmt::format("variant '{}'", variant.name)).error(),
                    services.terminal);
                code = ExitCode::failed;
                continue;
            }
            variants.push(document::Node::table({{"name", variant.name}, {"key", *id}}));
            if (!options_.json) {
                services.terminal.out(fmt::format(
                    "{}: signed by {}\n", escape_control(variant.name), id->substr(0, 16)));
            }
        }
        if (options_.json) {
            services.terminal.out(document::write_json(document::Node::table(
                {{"schema", "kernel-builder/sign/1"}, {"variants", std::move(variants)}})));
        }
        return code;
    }

    SignOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_sign() {
    return std::make_unique<Sign>();
}

} // namespace kb::cli
