// SPDX-License-Identifier: Apache-2.0
#include "http/client.hpp"

#include <fmt/format.h>

#include <utility>

namespace kb::http {

namespace {

bool keeps_method(int status) {
    return status == 307 || status == 308;
}

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || keeps_method(status);
}

} // namespace

std::string_view to_text(Method method) {
    switch (method) {
    case Method::get:
        return "GET";
    case Method::head:
        return "HEAD";
    case Method::post:
        return "POST";
    case Method::put:
        return "PUT";
    case Method::del:
        return "DELETE";
    }
    std::unreachable();
}

std::uint64_t body_size(const Body& body) {
    if (const auto* text = std::get_if<std::string>(&body)) {
        return text->size();
    }
    const auto* slice = std::get_if<FileSlice>(&body);
    return slice == nullptr ? 0 : slice->length;
}

Result<std::optional<Request>> next_request(const Request& request, const Response& response) {
    const auto location = response.headers.find("Location");
    const bool safe_method = request.method == Method::get || request.method == Method::head;
    if (request.redirects == Redirects::none || !is_redirect(response.status) || !location ||
        (!safe_method && !keeps_method(response.status))) {
        return std::optional<Request>{};
    }
    auto target = request.url.resolve(*location);
    if (!target) {
        return std::move(target)
            .context(fmt::format("following the redirect of '{}'", request.url.redacted()))
            .error();
    }
    if (request.url.scheme() == "https" && target->scheme() == "http") {
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format("'{}' redirects to unencrypted '{}', which is refused",
                                            request.url.redacted(),
                                            target->redacted())};
    }
    Request next = request;
    if (!target->has_origin_of(request.url)) {
        next.bearer = Secret{};
        next.headers.remove("Authorization");
        next.headers.remove("Cookie");
    }
    next.url = std::move(*target);
    return std::optional<Request>{std::move(next)};
}

} // namespace kb::http
