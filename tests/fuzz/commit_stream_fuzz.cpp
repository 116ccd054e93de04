// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"
#include "hub/commit_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace kb;

/// Everything that the parser says, so that two ways of cutting the stream can be compared.
class Transcript : public hub::CommitSink {
public:
    Result<void> on_header(hub::CommitHeader header) override {
        text += header.summary + header.description + header.parent_commit.value_or("");
        return {};
    }

    Result<void> on_content(Bytes bytes) override {
        content += as_text(bytes);
        return {};
    }

    Result<void> on_content_restart() override {
        content.clear();
        return {};
    }

    Result<void> on_operation(hub::CommitOp op) override {
        text += std::to_string(op.index()) +
                std::visit([](const auto& value) { return value.path.text(); }, op) + content;
        content.clear();
        return {};
    }

    std::string text{};
    std::string content{};
};

std::string parse(std::string_view bytes, std::size_t piece) {
    Transcript transcript;
    hub::CommitParser parser{transcript, {.max_operations = 1000, .max_content = 1UL << 20U}};
    while (!bytes.empty()) {
        if (!parser.feed(as_bytes(bytes.substr(0, piece)))) {
            return "refused";
        }
        bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    return parser.finish() ? transcript.text : "refused";
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    KB_ASSERT(parse(bytes, size + 1) == parse(bytes, 1), "the cut of a stream means nothing");
    return 0;
}
