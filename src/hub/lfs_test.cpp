// SPDX-License-Identifier: Apache-2.0
#include "hub/lfs.hpp"

#include "document/json.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

namespace kb::hub {

namespace {

const std::string kOid = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

document::Node json(std::string_view text) {
    return *document::parse_json(text, {});
}

LfsObject object(std::uint64_t size = 3) {
    return {.oid = *digest::Digest::from_hex(kOid), .size = size};
}

} // namespace

TEST_CASE("a batch request round-trips", "[hub][lfs]") {
    const LfsBatchRequest request{.operation = LfsOperation::upload,
                                  .transfers = {"basic", "multipart"},
                                  .objects = {object(), object(0)},
                                  .ref = "refs/heads/main"};
    CHECK(*parse_batch_request(to_json(request)) == request);
    const LfsBatchRequest bare{.operation = LfsOperation::download};
    CHECK(*parse_batch_request(to_json(bare)) == bare);
}

TEST_CASE("both spellings of the hash algorithm are read", "[hub][lfs]") {
    const std::string algo = GENERATE("sha256", "sha_256");
    CHECK(parse_batch_request(
              json(fmt::format(R"({{"operation":"upload","objects":[],"hash_algo":"{}"}})", algo)))
              .has_value());
    CHECK_FALSE(
        parse_batch_request(json(R"({"operation":"upload","objects":[],"hash_algo":"md5"})"))
            .has_value());
}

TEST_CASE("batch requests with lies about objects are refused", "[hub][lfs]") {
    const std::string item =
        GENERATE_COPY(fmt::format(R"({{"oid":"{}","size":-1}})", kOid),
                      fmt::format(R"({{"oid":"{}","size":1.5}})", kOid),
                      fmt::format(R"({{"oid":"{}","size":"3"}})", kOid),
                      fmt::format(R"({{"oid":"{}"}})", kOid),
                      fmt::format(R"({{"oid":"B{}","size":3}})", kOid.substr(1)),
                      fmt::format(R"({{"oid":"{}","size":3}})", kOid.substr(2)),
                      std::string{R"({"oid":7,"size":3})"},
                      std::string{R"({"size":3})"},
                      std::string{"3"},
                      std::string{"null"});
    INFO(item);
    CHECK_FALSE(
        parse_batch_request(json(fmt::format(R"({{"operation":"upload","objects":[{}]}})", item)))
            .has_value());
}

TEST_CASE("the number of objects in a batch is bounded", "[hub][lfs]") {
    LfsBatchRequest request;
    request.objects.assign(1000, object());
    CHECK(parse_batch_request(to_json(request)).has_value());
    request.objects.push_back(object());
    CHECK_FALSE(parse_batch_request(to_json(request)).has_value());
}

TEST_CASE("a batch answer round-trips, and no action means present", "[hub][lfs]") {
    const LfsAction upload{
        .href = "http://127.0.0.1/x?sig=1", .header = {{"a", "b"}}, .expires_in = 60};
    const LfsBatchAnswer answer{
        .transfer = "basic",
        .objects = {
            {.object = object()},
            {.object = object(4), .upload = upload, .verify = LfsAction{.href = "http://h/v"}},
            {.object = object(5), .error = LfsObjectError{.code = 404, .message = "none"}}}};
    CHECK(*parse_batch_answer(to_json(answer)) == answer);
    CHECK(to_json(answer).find("objects")->as_array()[0].find("actions") == nullptr);
}

TEST_CASE("an answer without a transfer means basic", "[hub][lfs]") {
    CHECK(parse_batch_answer(json(R"({"objects":[]})"))->transfer == "basic");
    CHECK_FALSE(parse_batch_answer(json("[]")).has_value());
}

TEST_CASE("multipart parts are found in the header whatever the padding", "[hub][lfs]") {
    const LfsMultipart multipart{.chunk_size = 10, .part_urls = {"u1", "u2", "u3"}};
    const LfsAction action{.href = "done", .header = to_header(multipart)};
    CHECK(*parse_multipart(action, 21) == multipart);
    CHECK(*parse_multipart(action, 30) == multipart);
    CHECK_FALSE(parse_multipart(action, 31).has_value());
    CHECK_FALSE(parse_multipart(action, 20).has_value());
    const LfsAction unpadded{.href = "done",
                             .header = {{"chunk_size", "10"}, {"1", "u1"}, {"2", "u2"}}};
    CHECK(parse_multipart(unpadded, 20)->part_urls == std::vector<std::string>{"u1", "u2"});
}

TEST_CASE("multipart headers that do not add up are refused", "[hub][lfs]") {
    using Header = std::map<std::string, std::string>;
    const Header header = GENERATE(Header{},
                                   Header{{"chunk_size", "0"}, {"1", "u"}},
                                   Header{{"chunk_size", "x"}, {"1", "u"}},
                                   Header{{"chunk_size", "10"}, {"2", "u"}},
                                   Header{{"chunk_size", "10"}, {"1", "u"}, {"01", "u"}},
                                   Header{{"chunk_size", "10"}, {"0", "u"}});
    CHECK_FALSE(parse_multipart({.href = "done", .header = header}, 10).has_value());
}

TEST_CASE("part counts round up and do not overflow", "[hub][lfs]") {
    CHECK(part_count(0, 10) == 0);
    CHECK(part_count(1, 10) == 1);
    CHECK(part_count(10, 10) == 1);
    CHECK(part_count(11, 10) == 2);
    CHECK(part_count(UINT64_MAX, 10) == UINT64_MAX / 10 + 1);
    CHECK(part_count(5, 0) == 0);
}

TEST_CASE("the end of a multipart upload round-trips", "[hub][lfs]") {
    const LfsCompletion completion{
        .oid = object().oid, .parts = {{.number = 1, .etag = "\"a\""}, {.number = 2, .etag = "b"}}};
    CHECK(*parse_completion(to_json(completion)) == completion);
    CHECK_FALSE(parse_completion(json(R"({"oid":"x","parts":[]})")).has_value());
}

} // namespace kb::hub
