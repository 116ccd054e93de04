// SPDX-License-Identifier: Apache-2.0
#include "store/decompress.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <memory>

namespace kb::store {

namespace {

struct Free {
    void operator()(archive* reader) const { archive_read_free(reader); }
};

Error corrupt(archive* reader) {
    const char* why = archive_error_string(reader);
    return {.code = ErrorCode::corrupt,
            .message = fmt::format("the data cannot be decompressed: {}",
                                   why == nullptr ? "it is no compressed file" : why)};
}

} // namespace

Result<std::string> decompress(std::string_view packed, std::uint64_t max_bytes) {
    const std::unique_ptr<archive, Free> reader{archive_read_new()};
    archive_entry* entry = nullptr;
    archive_read_support_filter_all(reader.get());
    archive_read_support_format_raw(reader.get());
    if (archive_read_open_memory(reader.get(), packed.data(), packed.size()) != ARCHIVE_OK ||
        archive_read_next_header(reader.get(), &entry) != ARCHIVE_OK ||
        archive_filter_count(reader.get()) < 2) { // one is "as is"
        return corrupt(reader.get());
    }
    std::string out;
    std::string block(1UL << 18U, '\0');
    while (true) {
        const auto size = archive_read_data(reader.get(), block.data(), block.size());
        if (size < 0) {
            return corrupt(reader.get());
        }
        if (size == 0) {
            return out;
        }
        out.append(block, 0, static_cast<std::size_t>(size));
        if (out.size() > max_bytes) {
            return Error{.code = ErrorCode::corrupt,
                         .message =
                             fmt::format("the data decompresses to more than {} bytes", max_bytes)};
        }
    }
}

} // namespace kb::store
