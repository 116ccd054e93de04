// SPDX-License-Identifier: Apache-2.0
#include "http/message.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>

namespace kb::http {

namespace {

class TextBody : public BodyReader {
public:
    TextBody(std::string text, std::optional<std::uint64_t> length)
        : text_{std::move(text)}, length_{length} {}

    Result<std::size_t> read(std::span<std::byte> out) override {
        const std::size_t n = std::min({out.size(), text_.size(), std::size_t{7}});
        std::ranges::copy(as_bytes(text_).first(n), out.begin());
        text_.erase(0, n);
        return n;
    }

    [[nodiscard]] std::optional<std::uint64_t> length() const override { return length_; }

private:
    std::string text_;
    std::optional<std::uint64_t> length_;
};

} // namespace

TEST_CASE("a range is a part, the whole or not satisfiable", "[http][message]") {
    using Row = std::tuple<std::string, std::uint64_t, RangeVerdict>;
    const RangeVerdict whole = WholeRange{};
    const RangeVerdict never = UnsatisfiableRange{};
    const auto [header, size, expected] =
        GENERATE_COPY(table<std::string, std::uint64_t, RangeVerdict>(
            {Row{"", 10, whole},
             Row{"bytes=0-0", 10, RangePart{0, 1}},
             Row{"bytes=2-5", 10, RangePart{2, 4}},
             Row{"bytes=2-", 10, RangePart{2, 8}},
             Row{"bytes=-3", 10, RangePart{7, 3}},
             Row{"bytes=-30", 10, RangePart{0, 10}},
             Row{"bytes=5-99999999999999999999", 10, whole},
             Row{"bytes=5-18446744073709551615", 10, RangePart{5, 5}},
             Row{"bytes=9-9", 10, RangePart{9, 1}},
             Row{"bytes=10-", 10, never},
             Row{"bytes=18446744073709551615-", 10, never},
             Row{"bytes=0-0", 0, never},
             Row{"bytes=-0", 10, never},
             Row{"bytes=-5", 0, never},
             Row{"bytes=5-2", 10, whole},
             Row{"bytes=0-0,2-3", 10, whole},
             Row{"bytes=a-b", 10, whole},
             Row{"bytes=-", 10, whole},
             Row{"bytes=1", 10, whole},
             Row{"lines=1-2", 10, whole}}));
    INFO(header);
    CHECK(parse_range(header, size) == expected);
}

TEST_CASE("a file answer says which part it is", "[http][message]") {
    const auto ask = [](Headers headers) {
        const ServerRequest request{.method = "GET", .headers = std::move(headers)};
        return file_response(request,
                             sys::UniqueFd{::open("/dev/null", O_RDONLY | O_CLOEXEC)},
                             100,
                             {{"ETag", "\"abc\""}});
    };
    const ServerResponse whole = ask({});
    CHECK(whole.status == 200);
    CHECK(whole.headers.find("Accept-Ranges") == "bytes");
    CHECK(std::get<FileBody>(whole.body).length == 100);

    const ServerResponse part = ask({{"Range", "bytes=10-19"}});
    CHECK(part.status == 206);
    CHECK(part.headers.find("Content-Range") == "bytes 10-19/100");
    CHECK(std::get<FileBody>(part.body).offset == 10);
    CHECK(std::get<FileBody>(part.body).length == 10);

    const ServerResponse never = ask({{"Range", "bytes=100-"}});
    CHECK(never.status == 416);
    CHECK(never.headers.find("Content-Range") == "bytes */100");

    CHECK(ask({{"Range", "bytes=0-1"}, {"If-Range", "\"abc\""}}).status == 206);
    CHECK(ask({{"Range", "bytes=0-1"}, {"If-Range", "\"old\""}}).status == 200);
    CHECK(ask({{"Range", "bytes=0-1"}, {"If-Range", "W/\"abc\""}}).status == 200);
}

TEST_CASE("content in memory is cut to the part that is asked for", "[http][message]") {
    const auto ask = [](std::string range) {
        return content_response({.headers = {{"Range", std::move(range)}}}, "0123456789", {});
    };
    CHECK(std::get<std::string>(ask("").body) == "0123456789");
    CHECK(std::get<std::string>(ask("bytes=2-4").body) == "234");
    CHECK(ask("bytes=2-4").status == 206);
    CHECK(ask("bytes=10-").status == 416);
}

TEST_CASE("a body is read up to a limit", "[http][message]") {
    const std::string text(100, 'x');
    TextBody fits{text, std::nullopt};
    CHECK(*read_all(fits, 100) == text);
    TextBody too_long{text, std::nullopt};
    CHECK(read_all(too_long, 99).error().code == ErrorCode::denied);
    TextBody announced{"", 100};
    CHECK(read_all(announced, 99).error().code == ErrorCode::denied);
}

TEST_CASE("a block is filled from pieces of any size", "[http][message]") {
    /// Gives one byte more each time, as a socket may.
    class Trickle final : public BodyReader {
    public:
        Result<std::size_t> read(std::span<std::byte> out) override {
            const std::size_t n = std::min({out.size(), ++step_, left_});
            std::ranges::fill(out.first(n), std::byte{'x'});
            left_ -= n;
            return n;
        }

        [[nodiscard]] std::optional<std::uint64_t> length() const override { return std::nullopt; }

    private:
        std::size_t step_ = 0;
        std::size_t left_ = 100;
    };

    Trickle body;
    std::array<std::byte, 64> block{};
    CHECK(*read_block(body, block) == 64);
    CHECK(block.back() == std::byte{'x'});
    CHECK(*read_block(body, block) == 36);
    CHECK(*read_block(body, block) == 0);
}

TEST_CASE("statuses have a phrase", "[http][message]") {
    CHECK(reason_phrase(404) == "Not Found");
    CHECK(reason_phrase(299) == "Unknown");
}

} // namespace kb::http
