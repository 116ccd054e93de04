// SPDX-License-Identifier: Apache-2.0
#include "plan/lock.hpp"

#include "base/text.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>

namespace kb::plan {

namespace {

const std::string kHex(64, 'a');

LockEntry entry(std::string id, std::string file, std::string platform = "x86_64-linux") {
    return {.id = std::move(id),
            .file = std::move(file),
            .platform = std::move(platform),
            .size = 12,
            .sha256 = digest::sha256("x")};
}

Lock sample() {
    Lock lock{.entries = {entry("wheel/torch@2.11.0#include", "torch.whl"),
                          entry("deb/libc6@2.36-9#gcc-12", "libc6.deb"),
                          entry("deb/g++@12.2#gcc-12", "g++.deb"),
                          entry("wheel/torch@2.11.0#include", "torch-arm.whl", "aarch64-linux"),
                          entry("stub/manylinux_2_28@1", "stubs", "any")}};
    lock.entries[0].slice = LockSlice{.name = "include",
                                      .record_sha256 = digest::sha256("record"),
                                      .manifest_sha256 = digest::sha256("manifest")};
    lock.entries[1].slice = LockSlice{.name = "gcc-12"};
    lock.entries[2].slice = LockSlice{.name = "gcc-12"};
    return lock;
}

std::string one_entry(std::string_view fields) {
    return R"({"schema":"kernel-builder/lock/1","entries":[{)" + std::string{fields} + "}]}";
}

} // namespace

TEST_CASE("a lock reads back and is written sorted whatever its order", "[plan][lock]") {
    Lock lock = sample();
    const std::string text = write_lock(lock);
    const auto back = parse_lock(text);
    REQUIRE(back.has_value());
    CHECK(back->entries.size() == 5);
    CHECK(back->entries.front().id == "deb/g++@12.2#gcc-12");
    CHECK(write_lock(*back) == text);
    std::ranges::reverse(lock.entries);
    CHECK(write_lock(lock) == text);
    CHECK(digest_of(lock) == digest_of(sample()));
    lock.entries.front().size = 13;
    CHECK(digest_of(lock) != digest_of(sample()));
}

TEST_CASE("the text of a lock is canonical", "[plan][lock]") {
    const Lock lock{.entries = {entry("stub/manylinux_2_28@1", "stubs", "any")}};
    CHECK(write_lock(lock) == R"({
  "entries": [
    {
      "file": "stubs",
      "id": "stub/manylinux_2_28@1",
      "platform": "any",
      "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
      "size": 12,
      "slice": null
    }
  ],
  "schema": "kernel-builder/lock/1"
}
)");
}

TEST_CASE("a requirement is satisfied by its own id and a set by its members", "[plan][lock]") {
    const Lock lock = sample();
    const backend::Platform here{};
    const auto found = [&](std::string_view id, const backend::Platform& platform) {
        std::vector<std::string> files;
        const auto requirement = backend::Requirement::parse(id).value();
        for (const LockEntry* item : entries_for(lock, requirement, platform)) {
            files.push_back(item->file);
        }
        return join(files, " ");
    };
    CHECK(found("wheel/torch@2.11.0#include", here) == "torch.whl");
    CHECK(found("wheel/torch@2.11.0#include", {.cpu = backend::Cpu::aarch64}) == "torch-arm.whl");
    CHECK(found("deb/gcc@12", here) == "libc6.deb g++.deb");
    CHECK(found("stub/manylinux_2_28@1", {.cpu = backend::Cpu::aarch64}) == "stubs");
    CHECK(found("deb/gcc@13", here).empty());
    CHECK(found("wheel/torch@2.11.0", here).empty());
    CHECK(found("wheel/torch@2.11#include", here).empty());
}

TEST_CASE("a lock that is not whole is refused with the reason", "[plan][lock]") {
    const std::string good =
        R"("id":"wheel/a@1","file":"a.whl","platform":"any","size":1,"sha256":")" + kHex +
        R"(","slice":null)";
    CHECK(parse_lock(one_entry(good)).has_value());
    const auto [text, what] = GENERATE_COPY(table<std::string, std::string>({
        {"", "build.lock"},
        {"{", "build.lock"},
        {"[]", "schema"},
        {R"({"schema":"kernel-builder/lock/2","entries":[]})", "kernel-builder lock"},
        {R"({"schema":"kernel-builder/lock/1"})", "entries"},
        {R"({"schema":"kernel-builder/lock/1","entries":[],"url":"x"})", "url"},
        {one_entry(replace_all(good, "wheel/a@1", "a")), "'id' of entries[0]"},
        {one_entry(replace_all(good, "wheel/a@1", "deb/-o@1#gcc-12")), "'deb/-o@1#gcc-12'"},
        {one_entry(replace_all(good, "a.whl", "../a.whl")), "'file' of entries[0]"},
        {one_entry(replace_all(good, "a.whl", "..")), "'file' of entries[0]"},
        {one_entry(replace_all(good, "\"any\"", "\"amiga\"")), "'platform' of entries[0]"},
        {one_entry(replace_all(good, kHex, "AB")), "sha256"},
        {one_entry(replace_all(good, "\"size\":1", "\"size\":-1")), "size"},
        {one_entry(replace_all(good, "\"size\":1,", "")), "size"},
        {one_entry(good + R"(,"url":"x")"), "url"},
        {one_entry(good + "},{" + good), "twice"},
    }));
    CAPTURE(text);
    const auto lock = parse_lock(text);
    REQUIRE_FALSE(lock.has_value());
    CAPTURE(lock.error().to_text());
    CHECK(lock.error().to_text().find(what) != std::string::npos);
    CHECK(lock.error().code == ErrorCode::corrupt);
}

} // namespace kb::plan
