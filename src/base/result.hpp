// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/assert.hpp"
#include "base/error.hpp"

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace kb {

/// A value or an Error. Member names are those of std::expected, which the linter cannot read yet
/// (ADR 0001). A dropped Result does not compile; reading the wrong side is a bug and aborts.
template <typename T>
class [[nodiscard]] Result {
public:
    using value_type = T;

    Result(Error error) : state_{std::in_place_index<1>, std::move(error)} {}

    template <typename U = T>

    requires(std::constructible_from<T, U&&> && !std::same_as<std::remove_cvref_t<U>, Result> &&
             !std::same_as<std::remove_cvref_t<U>, Error>) Result(U&& value)
        : state_{std::in_place_index<0>, std::forward<U>(value)} {}

    [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }

    explicit operator bool() const noexcept { return has_value(); }

    [[nodiscard]] T& value() & { return *checked(); }

    [[nodiscard]] const T& value() const& { return *const_cast<Result*>(this)->checked(); }

    /// By value: a reference into a dying Result would dangle in a range-for.
    [[nodiscard]] T value() && { return std::move(*checked()); }

    [[nodiscard]] T& operator*() & { return *checked(); }

    [[nodiscard]] const T& operator*() const& { return *const_cast<Result*>(this)->checked(); }

    [[nodiscard]] T operator*() && { return std::move(*checked()); }

    [[nodiscard]] T* operator->() { return checked(); }

    [[nodiscard]] const T* operator->() const { return const_cast<Result*>(this)->checked(); }

    [[nodiscard]] Error& error() & { return *failure(); }

    [[nodiscard]] const Error& error() const& { return *const_cast<Result*>(this)->failure(); }

    [[nodiscard]] Error error() && { return std::move(*failure()); }

    template <typename U>
    [[nodiscard]] T value_or(U&& other) && {
        return has_value() ? std::move(*checked()) : static_cast<T>(std::forward<U>(other));
    }

    /// Adds what the caller was doing; no effect on a value.
    [[nodiscard]] Result context(std::string doing) && {
        if (!has_value()) {
            failure()->context.push_back(std::move(doing));
        }
        return std::move(*this);
    }

private:
    T* checked() {
        T* const value = std::get_if<0>(&state_);
        KB_ASSERT(value != nullptr, "value() is asked only of a successful Result");
        return value;
    }

    Error* failure() {
        Error* const failed = std::get_if<1>(&state_);
        KB_ASSERT(failed != nullptr, "error() is asked only of a failed Result");
        return failed;
    }

    std::variant<T, Error> state_;
};

/// Success without a value, or an Error. `return {};` is success.
template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;

    Result() = default;

    Result(Error error) : error_{std::move(error)} {}

    [[nodiscard]] bool has_value() const noexcept { return !error_.has_value(); }

    explicit operator bool() const noexcept { return has_value(); }

    void value() const { KB_ASSERT(has_value(), "value() is asked only of a successful Result"); }

    [[nodiscard]] Error& error() & { return *failure(); }

    [[nodiscard]] const Error& error() const& { return *const_cast<Result*>(this)->failure(); }

    [[nodiscard]] Error error() && { return std::move(*failure()); }

    [[nodiscard]] Result context(std::string doing) && {
        if (error_) {
            error_->context.push_back(std::move(doing));
        }
        return std::move(*this);
    }

private:
    Error* failure() {
        KB_ASSERT(error_.has_value(), "error() is asked only of a failed Result");
        return &*error_;
    }

    std::optional<Error> error_;
};

} // namespace kb

#define KB_TRY_CONCAT_(a, b) a##b
#define KB_TRY_CONCAT(a, b) KB_TRY_CONCAT_(a, b)
#define KB_TRY_VALUE_(name, decl, ...)                                                             \
    auto name = (__VA_ARGS__);                                                                     \
    if (!name) {                                                                                   \
        return std::move(name).error();                                                            \
    }                                                                                              \
    decl = std::move(name).value()
#define KB_TRY_VALUE(decl, ...) KB_TRY_VALUE_(KB_TRY_CONCAT(kb_try_, __LINE__), decl, __VA_ARGS__)
#define KB_TRY_VOID(...)                                                                           \
    if (auto kb_try_result = (__VA_ARGS__); !kb_try_result) {                                      \
        return std::move(kb_try_result).error();                                                   \
    }                                                                                              \
    static_assert(true)
#define KB_TRY_SELECT(chosen, ...) chosen
/// KB_TRY(decl, expr) binds the value of a Result or returns its Error; KB_TRY(expr) does so for a
/// Result<void>.
#define KB_TRY(first, ...)                                                                         \
    KB_TRY_SELECT(__VA_OPT__(KB_TRY_VALUE, ) KB_TRY_VOID)(first __VA_OPT__(, ) __VA_ARGS__)
