// SPDX-License-Identifier: Apache-2.0
#include "registry/page.hpp"

#include "backend/variant.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "document/markup.hpp"
#include "hub/percent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace kb::registry {

namespace {

constexpr std::string_view kStyle = R"css(
:root{--fg:#1c2330;--dim:#5b6577;--line:#d9dee7;--bg:#fff;--soft:#f5f7fa;--mark:#1f6feb}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1.2rem;color:var(--fg);background:var(--bg);
font:15px/1.5 system-ui,sans-serif}
header{display:flex;flex-wrap:wrap;gap:1rem;align-items:baseline;border-bottom:1px solid var(--line);
padding-bottom:.6rem}
h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:1.8rem 0 .6rem}
a{color:var(--mark);text-decoration:none}a:hover{text-decoration:underline}
.dim{color:var(--dim)}.right{margin-left:auto}
.chip{display:inline-block;padding:0 .45rem;margin:.1rem .15rem .1rem 0;border-radius:.6rem;
background:var(--soft);border:1px solid var(--line);font-size:.82rem}
.chip.on{border-color:var(--mark);color:var(--mark)}
pre{background:var(--soft);border:1px solid var(--line);border-radius:.4rem;padding:.8rem;
overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.86rem}
table{border-collapse:collapse;width:100%;font-size:.88rem}
th,td{border-bottom:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top}
th{color:var(--dim);font-weight:600}
td.n{text-align:right;white-space:nowrap}
code{font:.84rem ui-monospace,monospace;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin-bottom:1rem}
.matrix td,.matrix th{border:1px solid var(--line);text-align:center}
.matrix th.row{text-align:left;white-space:nowrap}
.matrix td.has{background:#e7f5ec}.matrix td.not{color:var(--line)}
.cuda{background:#e4f3d8}.cpu{background:#e3edfb}.rocm{background:#fbe4e4}.xpu{background:#efe6fa}
.metal{background:#f0f0f0}
input{font:inherit;padding:.25rem .5rem;border:1px solid var(--line);border-radius:.4rem}
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ef;--dim:#9aa4b5;--line:#333b48;--bg:#12161d;
--soft:#1a202a;--mark:#6cb0ff}.matrix td.has{background:#17402a}.cuda{background:#26401a}
.cpu{background:#1c3352}.rocm{background:#4a2020}.xpu{background:#35234f}.metal{background:#333}}
)css";

/// A single quote ends nothing on our pages; it is written as no letter all the same.
std::string escaped(std::string_view text) {
    return replace_all(document::escape_markup(text), "'", "&#39;");
}

std::string begin_page(std::string_view title) {
    return fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                       "<title>{}</title><style>{}</style></head><body>\n",
                       escaped(title),
                       kStyle);
}

std::string search_form(std::string_view search) {
    return fmt::format("<form class=\"right\" action=\"/search\"><input type=\"search\" name=\"q\" "
                       "value=\"{}\" placeholder=\"search\" aria-label=\"search\"></form>",
                       escaped(search));
}

std::string link(std::string_view href, std::string_view text) {
    return fmt::format("<a href=\"{}\">{}</a>", escaped(href), escaped(text));
}

std::string revision_url(const hub::RepoId& id, std::string_view revision) {
    return fmt::format("{}/tree/{}", id.web_path(), hub::encode_segment(revision));
}

std::string chips(const RepoPage& page) {
    std::string out;
    const auto add = [&](const hub::Ref& ref) {
        out += fmt::format("<a class=\"chip{}\" href=\"{}\">{}</a>",
                           ref.name == page.revision ? " on" : "",
                           escaped(revision_url(page.id, ref.name)),
                           escaped(ref.name));
    };
    std::ranges::for_each(page.refs.branches, add);
    std::ranges::for_each(page.refs.tags, add);
    return out;
}

std::string loading(const RepoPage& page) {
    std::string code = fmt::format("# HF_ENDPOINT={}\n", page.endpoint);
    if (page.id.type() != hub::RepoType::kernels) {
        code += fmt::format("from huggingface_hub import snapshot_download\n"
                            "path = snapshot_download(\"{}\", repo_type=\"{}\", revision=\"{}\")\n",
                            page.id.text(),
                            hub::singular(page.id.type()),
                            page.revision);
    } else if (page.revision.size() > 1 && page.revision[0] == 'v' &&
               parse_unsigned(std::string_view{page.revision}.substr(1))) {
        code += fmt::format("from kernels import get_kernel\n"
                            "kernel = get_kernel(\"{}\", version={})\n",
                            page.id.text(),
                            page.revision.substr(1));
    } else {
        code += fmt::format("from kernels import get_kernel\n"
                            "kernel = get_kernel(\"{}\", revision=\"{}\")\n",
                            page.id.text(),
                            page.revision);
    }
    return fmt::format("<h2>Load it</h2><pre>{}</pre>\n", escaped(code));
}

/// Where a variant stands in the picture.
struct Place {
    std::string row{};
    std::string column{};
    std::string css{};
};

std::string with_version(std::string_view name, const Version& version) {
    const std::string text = version.to_text();
    return text.empty() ? std::string{name} : fmt::format("{} {}", name, text);
}

Place place_of(const PageVariant& variant) {
    const auto name = backend::VariantName::parse(variant.name);
    if (!name) {
        return {.row = "other", .column = variant.name};
    }
    const backend::Variant& v = name->variant();
    const bool has_platform = v.framework != backend::FrameworkId::torch_noarch;
    const std::string backend_name{v.universal ? "any" : backend::to_text(v.backend)};
    return {.row = with_version(backend::to_text(v.framework), v.framework_version),
            .column = with_version(backend_name, v.backend_version) +
                      (has_platform ? "\n" + backend::to_text(v.platform) : ""),
            .css = backend_name};
}

/// Framework and version down, backend and platform across, architectures in the cells.
std::string picture(const std::vector<PageVariant>& variants) {
    std::map<std::string, std::map<std::string, std::string>> cells;
    std::map<std::string, std::string> columns;
    for (const PageVariant& variant : variants) {
        const Place place = place_of(variant);
        columns.emplace(place.column, place.css);
        std::string& cell = cells[place.row][place.column];
        for (const std::string& arch : variant.archs) {
            cell += fmt::format("<span class=\"chip\">{}</span>", escaped(arch));
        }
        if (variant.archs.empty()) {
            cell += "&#10003;";
        }
    }
    std::string out = "<div class=\"scroll\"><table class=\"matrix\"><tr><th></th>";
    for (const auto& [column, css] : columns) {
        out += fmt::format(
            "<th class=\"{}\">{}</th>", escaped(css), replace_all(escaped(column), "\n", "<br>"));
    }
    out += "</tr>\n";
    for (const auto& [row, present] : cells) {
        out += fmt::format("<tr><th class=\"row\">{}</th>", escaped(row));
        for (const auto& [column, css] : columns) {
            const auto cell = present.find(column);
            out += cell == present.end() ? "<td class=\"not\">&#183;</td>"
                                         : fmt::format("<td class=\"has\">{}</td>", cell->second);
        }
        out += "</tr>\n";
    }
    return out + "</table></div>\n";
}

std::string variant_table(const RepoPage& page) {
    if (page.variants.empty()) {
        return "";
    }
    std::string out = "<h2>Variants</h2>" + picture(page.variants);
    out += "<div class=\"scroll\"><table><tr><th>variant</th><th>files</th><th>size</th>"
           "<th>built from</th><th>digest</th><th>signature</th></tr>\n";
    for (const PageVariant& variant : page.variants) {
        out += fmt::format("<tr><td><code>{}</code></td><td class=\"n\">{}</td><td class=\"n\">{}"
                           "</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                           escaped(variant.name),
                           variant.files,
                           human_bytes(variant.bytes),
                           escaped(variant.source.empty() ? "unknown" : variant.source),
                           variant.has_digest ? "yes" : "none",
                           variant.is_signed ? "yes" : "none");
    }
    return out + "</table></div>\n";
}

std::string file_table(const RepoPage& page) {
    std::string out = "<h2>Files</h2><div class=\"scroll\"><table>"
                      "<tr><th>file</th><th>size</th><th>digest</th></tr>\n";
    for (const hub::TreeEntry& entry : page.files) {
        out += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td><code>{}</code></td></tr>\n",
                           link(fmt::format("{}/resolve/{}/{}",
                                            page.id.web_path(),
                                            page.commit.hex(),
                                            hub::encode_path(entry.path.text())),
                                entry.path.text()),
                           human_bytes(entry.size),
                           entry.lfs ? "sha256 " + entry.lfs->oid.hex() : "git " + entry.oid.hex());
    }
    out += "</table></div>\n";
    return page.has_more_files ? out + "<p class=\"dim\">There are more files.</p>\n" : out;
}

std::string history_table(const RepoPage& page) {
    std::string out = "<h2>History</h2><div class=\"scroll\"><table>"
                      "<tr><th>when</th><th>who</th><th>what</th><th>commit</th></tr>\n";
    for (const hub::CommitInfo& commit : page.history) {
        out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td></tr>\n",
                           hub::iso_time(commit.time),
                           escaped(join(commit.authors, ", ")),
                           escaped(commit.title),
                           link(revision_url(page.id, commit.id.hex()), commit.id.hex()));
    }
    return out + "</table></div>\n";
}

/// Without the block of keys that a card begins with.
std::string_view card_text(std::string_view card) {
    if (card.starts_with("---\n")) {
        const std::size_t end = card.find("\n---\n", 3);
        if (end != std::string_view::npos) {
            card.remove_prefix(end + 5);
        }
    }
    return trim(card);
}

std::string facts(const RepoPage& page) {
    std::string out;
    const auto add = [&out](std::string_view name, std::string_view value) {
        if (!value.empty()) {
            out += fmt::format("<span class=\"chip\">{}: {}</span>", escaped(name), escaped(value));
        }
    };
    add("type", hub::singular(page.id.type()));
    add("access", page.visibility == hub::Visibility::private_ ? "private" : "");
    if (page.kernel) {
        add("version", page.kernel->version);
        add("license", page.kernel->license);
        add("upstream", page.kernel->upstream);
    }
    add("commit", page.commit.hex());
    return fmt::format("<p>{}</p>\n", out);
}

} // namespace

std::string write_page(const RepoPage& page) {
    std::string out = begin_page(page.id.text());
    out += fmt::format("<header>{}<h1>{}</h1>{}</header>\n<p>{}</p>\n",
                       link("/", "all repositories"),
                       escaped(page.id.text()),
                       search_form(""),
                       chips(page));
    out += facts(page);
    out += loading(page);
    if (const std::string_view card = card_text(page.card); !card.empty()) {
        out += fmt::format("<h2>Card</h2><pre>{}</pre>\n", escaped(card));
    }
    out += variant_table(page) + file_table(page) + history_table(page);
    return out + "</body></html>\n";
}

std::string write_page(const IndexPage& page) {
    std::string out = begin_page("registry");
    out += fmt::format("<header><h1>Repositories</h1>{}</header>\n", search_form(page.search));
    if (page.rows.empty()) {
        out += "<p class=\"dim\">Nothing was found.</p>\n";
    } else {
        out += "<table><tr><th>name</th><th>type</th><th>made</th></tr>\n";
        for (const IndexRow& row : page.rows) {
            out += fmt::format("<tr><td>{}{}</td><td>{}</td><td>{}</td></tr>\n",
                               link(row.id.web_path(), row.id.text()),
                               row.visibility == hub::Visibility::private_
                                   ? " <span class=\"chip\">private</span>"
                                   : "",
                               hub::singular(row.id.type()),
                               hub::iso_time(row.created));
        }
        out += "</table>\n";
    }
    return out + "</body></html>\n";
}

const std::string& page_policy() {
    static const std::string kPolicy =
        fmt::format("default-src 'none'; style-src 'sha256-{}'; form-action 'self'; base-uri "
                    "'none'; frame-ancestors 'none'",
                    digest::sha256(kStyle).base64());
    return kPolicy;
}

} // namespace kb::registry
