// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include "support/catch.hpp"

#include <cerrno>
#include <memory>

namespace kb {
namespace {

Result<int> half(int n) {
    if (n % 2 != 0) {
        return Error{.code = ErrorCode::unsupported, .message = "odd"};
    }
    return n / 2;
}

Result<int> quarter(int n) {
    KB_TRY(const int once, half(n).context("first half"));
    KB_TRY(const int twice, half(once));
    return twice;
}

Result<void> even(int n) {
    KB_TRY(half(n).has_value() ? Result<void>{} : Result<void>{half(n).error()});
    return {};
}

TEST_CASE("KB_TRY binds a value or returns the error with its context", "[base][result]") {
    CHECK(*quarter(8) == 2);
    REQUIRE_FALSE(quarter(3));
    CHECK(quarter(3).error().to_text() == "first half: odd");
    CHECK(quarter(6).error().to_text() == "odd");
    CHECK(even(2));
    CHECK(even(1).error().code == ErrorCode::unsupported);
}

TEST_CASE("Result moves a value that cannot be copied", "[base][result]") {
    Result<std::unique_ptr<int>> made = std::make_unique<int>(7);
    const std::unique_ptr<int> taken = std::move(made).value();
    CHECK(*taken == 7);
}

TEST_CASE("context is printed outermost first", "[base][result]") {
    Result<int> failed = Error{.message = "no such file"};
    failed = std::move(failed).context("opening 'a'");
    failed = std::move(failed).context("reading the lock");
    CHECK(failed.error().to_text() == "reading the lock: opening 'a': no such file");
}

TEST_CASE("errno gives code and text", "[base][result]") {
    CHECK(error_from_errno(ENOENT, "opening 'x'").code == ErrorCode::not_found);
    CHECK(error_from_errno(EACCES, "opening 'x'").message == "opening 'x': Permission denied");
}

} // namespace
} // namespace kb
