// SPDX-License-Identifier: Apache-2.0
#include "hub/xet_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace kb::hub {

namespace {

constexpr std::size_t kRecord = 48;
constexpr std::size_t kHash = 32;
constexpr std::string_view kTag{"HFRepoMetaData\0", 15};
constexpr std::uint64_t kVersion = 2;
constexpr std::uint32_t kHasVerification = 0x80000000U;
constexpr std::uint32_t kHasSha256 = 0x40000000U;

Error broken(std::string message) {
    return {.code = ErrorCode::corrupt, .message = "a shard " + std::move(message)};
}

class Record {
public:
    explicit Record(Bytes bytes) : bytes_{bytes} {}

    [[nodiscard]] XetHash hash() const {
        XetHash out;
        std::ranges::copy(bytes_.first(kHash),
                          std::as_writable_bytes(std::span{out.bytes}).begin());
        return out;
    }

    /// The four numbers behind the hash.
    [[nodiscard]] std::uint32_t number(std::size_t index) const { return at(kHash + 4 * index); }

    [[nodiscard]] std::uint64_t wide(std::size_t offset) const {
        return at(offset) | std::uint64_t{at(offset + 4)} << 32U;
    }

    [[nodiscard]] bool is_bookend() const {
        return std::ranges::all_of(bytes_.first(kHash),
                                   [](std::byte byte) { return byte == std::byte{0xFF}; });
    }

private:
    [[nodiscard]] std::uint32_t at(std::size_t offset) const {
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            value |= std::to_integer<std::uint32_t>(bytes_[offset + i]) << (8 * i);
        }
        return value;
    }

    Bytes bytes_;
};

class ShardParser {
public:
    explicit ShardParser(Bytes bytes) : bytes_{bytes} {}

    Result<std::vector<XetFile>> parse() {
        if (bytes_.size() < kRecord || !as_text(bytes_).starts_with(kTag)) {
            return broken("begins like none");
        }
        KB_TRY(const Record header, next());
        if (header.wide(32) != kVersion) {
            return broken(fmt::format("of version {}", header.wide(32)));
        }
        std::vector<XetFile> files;
        while (true) {
            KB_TRY(const Record record, next());
            if (record.is_bookend()) {
                break;
            }
            KB_TRY(XetFile file, this->file(record));
            files.push_back(std::move(file));
        }
        while (true) {
            KB_TRY(const Record record, next());
            if (record.is_bookend()) {
                return files; // a footer may follow, which nobody needs
            }
            KB_TRY(check_room(record.number(1)));
            bytes_ = bytes_.subspan(kRecord * record.number(1));
        }
    }

private:
    Result<Record> next() {
        if (bytes_.size() < kRecord) {
            return broken("ends too early");
        }
        const Record record{bytes_.first(kRecord)};
        bytes_ = bytes_.subspan(kRecord);
        return record;
    }

    Result<void> check_room(std::uint64_t records) const {
        return records <= bytes_.size() / kRecord ? Result<void>{} : broken("ends too early");
    }

    Result<XetFile> file(const Record& header) {
        XetFile file{.hash = header.hash()};
        const std::uint32_t flags = header.number(0);
        const std::uint32_t count = header.number(1);
        if (count == 0) {
            return broken("with a file of nothing");
        }
        KB_TRY(check_room(count)); // before memory is taken for them
        file.terms.reserve(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            KB_TRY(const Record record, next());
            const XetTerm term{.xorb = record.hash(),
                               .bytes = record.number(1),
                               .first = record.number(2),
                               .end = record.number(3)};
            if (term.first >= term.end || term.bytes == 0) {
                return broken("with an empty term");
            }
            file.terms.push_back(term);
        }
        if ((flags & kHasVerification) != 0) {
            for (XetTerm& term : file.terms) {
                KB_TRY(const Record record, next());
                term.verification = record.hash();
            }
        }
        if ((flags & kHasSha256) != 0) {
            KB_TRY(const Record record, next());
            // Its text in the order of Xet hashes is the digest's usual text.
            KB_TRY(file.sha256, digest::Digest::from_hex(record.hash().text()));
        }
        return file;
    }

    Bytes bytes_;
};

} // namespace

std::uint64_t XetFile::size() const {
    std::uint64_t sum = 0;
    for (const XetTerm& term : terms) {
        sum += term.bytes;
    }
    return sum;
}

Result<std::vector<XetFile>> parse_shard(Bytes shard) {
    return ShardParser{shard}.parse();
}

} // namespace kb::hub
