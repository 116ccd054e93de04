// SPDX-License-Identifier: Apache-2.0
#include "document/json.hpp"
#include "upload/transfers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::upload {

Result<std::vector<Piece>> multipart_pieces(const LocalFile& file, const hub::LfsBatchItem& item) {
    KB_TRY(const hub::LfsMultipart plan, hub::parse_multipart(*item.upload, file.size));
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < plan.part_urls.size(); ++i) {
        const std::uint64_t offset = i * plan.chunk_size;
        pieces.push_back({.url = plan.part_urls[i],
                          .slice = {.path = file.source,
                                    .offset = offset,
                                    .length = std::min(plan.chunk_size, file.size - offset)},
                          .part = i + 1});
    }
    if (pieces.empty()) {
        return Error{.code = ErrorCode::corrupt,
                     .message = "the registry asks for a multipart upload without parts"};
    }
    return pieces;
}

Result<void> multipart_finish(const HubClient& hub,
                              const hub::LfsBatchItem& item,
                              const std::map<std::uint64_t, hub::LfsPart>& parts) {
    hub::LfsCompletion completion{.oid = item.object.oid};
    for (const auto& [number, part] : parts) {
        completion.parts.push_back(part);
    }
    KB_TRY(const http::Url url, hub.endpoint().resolve(item.upload->href));
    http::Request request{.method = http::Method::post, .url = url};
    request.headers.set("Content-Type", std::string{hub::kLfsContentType});
    request.headers.set("Accept", std::string{hub::kLfsContentType});
    request.body =
        document::write_json(hub::to_json(completion), {.indent = 0, .final_newline = false});
    KB_TRY(const http::Response response, hub.retrier().send(request));
    return response.ok() ? Result<void>{} : hub.explain(response, "putting the parts together");
}

} // namespace kb::upload
