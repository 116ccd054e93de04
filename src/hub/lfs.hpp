// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "document/node.hpp"
#include "hub/git_object.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::hub {

inline constexpr std::string_view kLfsContentType = "application/vnd.git-lfs+json";

enum class LfsOperation : std::uint8_t { upload, download };

/// Object as it travels: the pointer's id and size.
using LfsObject = LfsPointer;

/// POST {web path}.git/info/lfs/objects/batch. At most 1000 objects are read.
struct LfsBatchRequest {
    LfsOperation operation = LfsOperation::upload;
    /// What the sender speaks, best first: "basic", "multipart", "xet".
    std::vector<std::string> transfers{};
    std::vector<LfsObject> objects{};
    /// Full or short ref; absent for a pull request.
    std::optional<std::string> ref{};

    bool operator==(const LfsBatchRequest&) const = default;
};

struct LfsAction {
    std::string href{};
    std::map<std::string, std::string> header{};
    /// Seconds.
    std::optional<std::uint64_t> expires_in{};

    bool operator==(const LfsAction&) const = default;
};

struct LfsObjectError {
    int code = 0;
    std::string message{};

    bool operator==(const LfsObjectError&) const = default;
};

/// No action and no error on an upload: the object is there already.
struct LfsBatchItem {
    LfsObject object{};
    std::optional<LfsAction> upload{};
    std::optional<LfsAction> download{};
    std::optional<LfsAction> verify{};
    std::optional<LfsObjectError> error{};

    bool operator==(const LfsBatchItem&) const = default;
};

struct LfsBatchAnswer {
    /// "basic" when the server does not say.
    std::string transfer = "basic";
    std::vector<LfsBatchItem> objects{};

    bool operator==(const LfsBatchAnswer&) const = default;
};

[[nodiscard]] document::Node to_json(const LfsBatchRequest& request);
[[nodiscard]] document::Node to_json(const LfsBatchAnswer& answer);
/// `corrupt` names the member that is wrong. Upper-case ids and negative sizes are refused.
[[nodiscard]] Result<LfsBatchRequest> parse_batch_request(const document::Node& json);
[[nodiscard]] Result<LfsBatchAnswer> parse_batch_answer(const document::Node& json);

/// {oid, size}: body of a verify call.
[[nodiscard]] document::Node to_json(const LfsObject& object);
[[nodiscard]] Result<LfsObject> parse_lfs_object(const document::Node& json);

/// A multipart upload as it is hidden in the header map of an upload action: "chunk_size" and the
/// numbered part URLs.
struct LfsMultipart {
    std::uint64_t chunk_size = 0;
    /// Part 1 first.
    std::vector<std::string> part_urls{};

    bool operator==(const LfsMultipart&) const = default;
};

/// ceil(size / chunk_size), 0 for a chunk size of 0.
[[nodiscard]] std::uint64_t part_count(std::uint64_t size, std::uint64_t chunk_size);
[[nodiscard]] std::map<std::string, std::string> to_header(const LfsMultipart& multipart);
/// `corrupt` unless the parts are numbered 1..n without a gap and n fits `size`.
[[nodiscard]] Result<LfsMultipart> parse_multipart(const LfsAction& upload, std::uint64_t size);

struct LfsPart {
    std::uint64_t number = 0;
    std::string etag{};

    bool operator==(const LfsPart&) const = default;
};

/// Body of the call that ends a multipart upload.
struct LfsCompletion {
    digest::Digest oid{};
    std::vector<LfsPart> parts{};

    bool operator==(const LfsCompletion&) const = default;
};

[[nodiscard]] document::Node to_json(const LfsCompletion& completion);
[[nodiscard]] Result<LfsCompletion> parse_completion(const document::Node& json);

} // namespace kb::hub
