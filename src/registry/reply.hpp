// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "hub/status.hpp"

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace kb::registry {

/// Status of a failure that is ours: 507 when the disk is full, else 500. The text is for the log.
[[nodiscard]] hub::HubStatus internal_failure(const Error& error);

/// A value, or how the call ended for the client. An Error that gets here by KB_TRY is ours, not
/// the client's: what the client did wrong is said with a HubStatus.
template <typename T>
class [[nodiscard]] Reply {
public:
    Reply(hub::HubStatus status) // NOLINT(google-explicit-constructor): `return status;` reads well
        : state_{std::in_place_index<1>, std::move(status)} {}

    Reply(const Error& error) // NOLINT(google-explicit-constructor): for KB_TRY on a Result
        : state_{std::in_place_index<1>, internal_failure(error)} {}

    template <typename U = T>

    requires(std::constructible_from<T, U&&> && !std::same_as<std::remove_cvref_t<U>, Reply> &&
             !std::same_as<std::remove_cvref_t<U>, Error> &&
             !std::same_as<std::remove_cvref_t<U>, hub::HubStatus>)
        Reply(U&& value) // NOLINT(google-explicit-constructor): `return value;` reads well
        : state_{std::in_place_index<0>, std::forward<U>(value)} {}

    explicit operator bool() const noexcept { return state_.index() == 0; }

    [[nodiscard]] T& value() & { return *checked(); }

    [[nodiscard]] T&& value() && { return std::move(*checked()); }

    [[nodiscard]] T& operator*() & { return *checked(); }

    [[nodiscard]] const T& operator*() const& { return *const_cast<Reply*>(this)->checked(); }

    [[nodiscard]] T* operator->() { return checked(); }

    [[nodiscard]] hub::HubStatus& error() & { return *failure(); }

    [[nodiscard]] const hub::HubStatus& error() const& {
        return *const_cast<Reply*>(this)->failure();
    }

    [[nodiscard]] hub::HubStatus&& error() && { return std::move(*failure()); }

private:
    T* checked() {
        KB_ASSERT(state_.index() == 0, "value() is asked only of a successful Reply");
        return std::get_if<0>(&state_);
    }

    hub::HubStatus* failure() {
        KB_ASSERT(state_.index() == 1, "error() is asked only of a failed Reply");
        return std::get_if<1>(&state_);
    }

    std::variant<T, hub::HubStatus> state_;
};

/// For calls whose success says nothing.
struct Done {
    bool operator==(const Done&) const = default;
};

/// The client sent what cannot be meant: 400 with the parser's text.
template <typename T>
[[nodiscard]] Reply<T> or_bad_request(Result<T> result) {
    if (!result) {
        return hub::HubStatus{.http = 400, .message = result.error().to_text()};
    }
    return std::move(result).value();
}

[[nodiscard]] hub::HubStatus revision_not_found(std::string_view revision);
[[nodiscard]] hub::HubStatus entry_not_found(std::string_view path, std::string_view revision);

} // namespace kb::registry
