// SPDX-License-Identifier: Apache-2.0
#include "package/source_archive.hpp"

#include "backend/mounts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::package {

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kNameSize = 100;

/// Member header. `name` is at most kNameSize bytes.
std::string header(std::string_view name, std::uint64_t size, std::string_view mode, char type) {
    std::string block(kBlock, '\0');
    const auto put = [&block](std::size_t at, std::string_view text) {
        block.replace(at, text.size(), text);
    };
    put(0, name);
    put(100, mode);
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", size));
    put(136, fmt::format("{:011o}", backend::kSourceDateEpoch));
    block[156] = type;
    put(257, "ustar");
    put(263, "00");
    put(148, "        "); // the checksum counts itself as spaces
    unsigned sum = 0;
    for (const char c : block) {
        sum += static_cast<unsigned char>(c);
    }
    put(148, fmt::format("{:06o}", sum) + '\0' + ' ');
    return block;
}

void append_padded(std::string& out, std::string_view content) {
    out += content;
    out.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

/// "LENGTH path=PATH\n", where LENGTH counts its own digits.
std::string pax_record(std::string_view path) {
    const std::size_t rest = std::string_view{" path=\n"}.size() + path.size();
    std::size_t length = rest + 1;
    while (rest + fmt::formatted_size("{}", length) != length) {
        ++length;
    }
    return fmt::format("{} path={}\n", length, path);
}

} // namespace

std::string write_source_archive(std::vector<FileImage> files) {
    std::ranges::sort(files, {}, &FileImage::path);
    std::string out;
    for (const FileImage& file : files) {
        std::string_view name = file.path.text();
        if (name.size() > kNameSize) {
            const std::string record = pax_record(name);
            out += header("pax", record.size(), "0000644", 'x');
            append_padded(out, record);
            name = name.substr(0, kNameSize);
        }
        const bool executable = file.mode == FileMode::executable;
        out += header(name, file.content.size(), executable ? "0000755" : "0000644", '0');
        append_padded(out, file.content);
    }
    out.append(2 * kBlock, '\0');
    return out;
}

} // namespace kb::package
