// SPDX-License-Identifier: Apache-2.0
#include "store/archive_builder.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <cstdio>

namespace kb::store::test {
namespace {

void set_link(archive_entry* entry, const Item& item) {
    if (item.what == What::symlink) {
        archive_entry_set_filetype(entry, AE_IFLNK);
        archive_entry_set_symlink(entry, item.content.c_str());
    } else if (item.what == What::hardlink) {
        archive_entry_set_hardlink(entry, item.content.c_str());
    } else if (item.what == What::directory) {
        archive_entry_set_filetype(entry, AE_IFDIR);
    } else if (item.what == What::fifo) {
        archive_entry_set_filetype(entry, AE_IFIFO);
    }
}

void write_items(archive* out, const std::vector<Item>& items) {
    for (const Item& item : items) {
        archive_entry* entry = archive_entry_new();
        const bool has_data = item.what == What::file || item.what == What::executable;
        archive_entry_set_pathname(entry, item.path.c_str());
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, item.what == What::executable ? 04755 : 0644);
        archive_entry_set_size(entry, has_data ? static_cast<la_int64_t>(item.content.size()) : 0);
        set_link(entry, item);
        REQUIRE(archive_write_header(out, entry) == ARCHIVE_OK);
        if (has_data) {
            REQUIRE(archive_write_data(out, item.content.data(), item.content.size()) ==
                    static_cast<la_ssize_t>(item.content.size()));
        }
        archive_entry_free(entry);
    }
}

} // namespace

void write_archive(const std::filesystem::path& path,
                   ArchiveKind kind,
                   const std::vector<Item>& items) {
    archive* out = archive_write_new();
    if (kind == ArchiveKind::zip) {
        archive_write_set_format_zip(out);
    } else {
        archive_write_set_format_pax_restricted(out);
        if (kind == ArchiveKind::conda) {
            archive_write_add_filter_zstd(out);
        } else {
            archive_write_add_filter_xz(out);
        }
    }
    const bool nested = kind == ArchiveKind::deb || kind == ArchiveKind::conda;
    const std::filesystem::path inner =
        nested ? std::filesystem::path{path.string() + ".data"} : path;
    REQUIRE(archive_write_open_filename(out, inner.c_str()) == ARCHIVE_OK);
    write_items(out, items);
    REQUIRE(archive_write_close(out) == ARCHIVE_OK);
    archive_write_free(out);
    if (kind == ArchiveKind::conda) {
        write_archive(path,
                      ArchiveKind::zip,
                      {{.path = "metadata.json", .content = "{}"},
                       {.path = "info-x-1-0.tar.zst", .content = "not looked at"},
                       {.path = "pkg-x-1-0.tar.zst", .content = kb::test::read_text(inner)}});
    }
    if (kind == ArchiveKind::deb) {
        archive* deb = archive_write_new();
        archive_write_set_format_ar_bsd(deb);
        REQUIRE(archive_write_open_filename(deb, path.c_str()) == ARCHIVE_OK);
        write_items(deb,
                    {{.path = "debian-binary", .content = "2.0\n"},
                     {.path = "data.tar.xz", .content = kb::test::read_text(inner)}});
        REQUIRE(archive_write_close(deb) == ARCHIVE_OK);
        archive_write_free(deb);
    }
    if (nested) {
        std::filesystem::remove(inner);
    }
}

} // namespace kb::store::test
