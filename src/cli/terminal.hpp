// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kb::cli {

/// Standard output carries the result, standard error progress and diagnostics. An interface
/// because tests read what a command said.
class Terminal {
public:
    virtual ~Terminal() = default;
    virtual void out(std::string_view text) = 0;
    virtual void err(std::string_view text) = 0;
    /// True when standard error is a terminal: progress may overwrite its line.
    [[nodiscard]] virtual bool is_interactive() const = 0;
    /// Columns of the terminal, 80 when unknown.
    [[nodiscard]] virtual std::size_t width() const = 0;
};

/// stdout and stderr of the process. A closed or full stdout is an error at the end of main
/// (`flush`).
class StandardTerminal final : public Terminal {
public:
    void out(std::string_view text) override;
    void err(std::string_view text) override;
    [[nodiscard]] bool is_interactive() const override;
    [[nodiscard]] std::size_t width() const override;
    /// False when something written to stdout was lost.
    [[nodiscard]] bool flush();
};

/// Keeps what was said.
class RecordingTerminal final : public Terminal {
public:
    void out(std::string_view text) override { out_text += text; }

    void err(std::string_view text) override { err_text += text; }

    [[nodiscard]] bool is_interactive() const override { return false; }

    [[nodiscard]] std::size_t width() const override { return 80; }

    std::string out_text{};
    std::string err_text{};
};

} // namespace kb::cli
