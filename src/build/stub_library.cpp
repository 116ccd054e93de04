// SPDX-License-Identifier: Apache-2.0
#include "build/stub_library.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <map>
#include <string_view>

namespace kb::build {

namespace {

constexpr std::uint64_t kHeaderSize = 64;
constexpr std::uint64_t kSegmentSize = 56;
constexpr std::uint64_t kSegments = 5;
constexpr std::string_view kAnswerText = "stub of kernel-builder testshell: no GPU library here";

constexpr std::array<std::uint32_t, 5> kSegmentTypes = {1, 1, 1, 2, 0x6474e551};
constexpr std::uint32_t kRead = 4;
constexpr std::uint32_t kWrite = 2;
constexpr std::uint32_t kExecute = 1;

/// Little-endian bytes, appended.
class Out {
public:
    template <std::unsigned_integral T>
    void put(T value) {
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            bytes_ += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xffU);
        }
    }

    void text(std::string_view text) { bytes_ += text; }

    void align(std::uint64_t boundary) {
        while (bytes_.size() % boundary != 0) {
            bytes_ += '\0';
        }
    }

    [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }

    [[nodiscard]] std::string& bytes() { return bytes_; }

private:
    std::string bytes_;
};

/// The System V hash by which the dynamic loader finds symbols and versions.
std::uint32_t elf_hash(std::string_view name) {
    std::uint32_t hash = 0;
    for (const char c : name) {
        hash = (hash << 4U) + static_cast<unsigned char>(c);
        const std::uint32_t high = hash & 0xf0000000U;
        hash = (hash ^ (high >> 24U)) & ~high;
    }
    return hash;
}

/// Names, each once, at their offset.
class Strings {
public:
    Strings() { bytes_.push_back('\0'); }

    std::uint32_t add(const std::string& name) {
        const auto [found, added] =
            offsets_.emplace(name, static_cast<std::uint32_t>(bytes_.size()));
        if (added) {
            bytes_ += name;
            bytes_ += '\0';
        }
        return found->second;
    }

    [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
    std::map<std::string, std::uint32_t> offsets_;
};

struct Places {
    std::uint64_t hash = 0;
    std::uint64_t symbols = 0;
    std::uint64_t versym = 0;
    std::uint64_t verdef = 0;
    std::uint64_t strings = 0;
    std::uint64_t read_end = 0;
    std::uint64_t code = 0;
    std::uint64_t code_end = 0;
    std::uint64_t dynamic = 0;
    std::uint64_t dynamic_end = 0;
};

class Writer {
public:
    explicit Writer(const StubLibrary& library)
        : library_{&library}, page_{library.machine == StubMachine::aarch64 ? 0x10000U : 0x1000U} {
        collect_versions();
    }

    std::string write() {
        out_.text(std::string(kHeaderSize + kSegments * kSegmentSize, '\0')); // filled in last
        const std::uint32_t soname = strings_.add(library_->soname);
        write_hash();
        reserve_symbols();
        write_versions();
        out_.align(8);
        // The code's place decides the values of the symbols, so the names are placed before.
        for (const StubSymbol& symbol : library_->symbols) {
            strings_.add(symbol.name);
        }
        places_.strings = out_.size();
        out_.text(strings_.bytes());
        places_.read_end = out_.size();
        write_code();
        fill_symbols();
        write_dynamic(soname);
        fill_head();
        return std::move(out_.bytes());
    }

private:
    void collect_versions() {
        versions_ = library_->versions;
        for (const StubSymbol& symbol : library_->symbols) {
            versions_.push_back(symbol.version);
        }
        std::erase(versions_, std::string{});
        std::ranges::sort(versions_);
        versions_.erase(std::unique(versions_.begin(), versions_.end()), versions_.end());
    }

    void write_hash() {
        const auto n = static_cast<std::uint32_t>(library_->symbols.size());
        const std::uint32_t buckets = n / 2 + 1;
        std::vector<std::uint32_t> heads(buckets, 0);
        std::vector<std::uint32_t> chains(n + 1, 0);
        for (std::uint32_t i = 1; i <= n; ++i) {
            std::uint32_t& head = heads[elf_hash(library_->symbols[i - 1].name) % buckets];
            chains[i] = head;
            head = i;
        }
        out_.align(8);
        places_.hash = out_.size();
        out_.put(buckets);
        out_.put(n + 1);
        std::ranges::for_each(heads, [this](std::uint32_t value) { out_.put(value); });
        std::ranges::for_each(chains, [this](std::uint32_t value) { out_.put(value); });
    }

    void reserve_symbols() {
        out_.align(8);
        places_.symbols = out_.size();
        out_.text(std::string(24 * (library_->symbols.size() + 1), '\0'));
        places_.versym = out_.size();
        out_.put(std::uint16_t{0});
        for (const StubSymbol& symbol : library_->symbols) {
            const auto found = std::ranges::find(versions_, symbol.version);
            const auto index = static_cast<std::uint16_t>(found - versions_.begin());
            out_.put(static_cast<std::uint16_t>(symbol.version.empty() ? 1 : index + 2));
        }
    }

    void write_versions() {
        out_.align(8);
        places_.verdef = out_.size();
        constexpr std::uint16_t kBase = 1;
        write_version(library_->soname, 1, kBase, versions_.empty());
        for (std::size_t i = 0; i < versions_.size(); ++i) {
            const auto index = static_cast<std::uint16_t>(i + 2);
            write_version(versions_[i], index, 0, i + 1 == versions_.size());
        }
    }

    void
    write_version(const std::string& name, std::uint16_t index, std::uint16_t flags, bool is_last) {
        out_.put(std::uint16_t{1});
        out_.put(flags);
        out_.put(index);
        out_.put(std::uint16_t{1}); // one name follows
        out_.put(elf_hash(name));
        out_.put(std::uint32_t{20});
        out_.put(is_last ? std::uint32_t{0} : std::uint32_t{28});
        out_.put(strings_.add(name));
        out_.put(std::uint32_t{0});
    }

    /// Two functions that all symbols share: one answers 100, one the text behind it.
    void write_code() {
        out_.align(page_);
        places_.code = out_.size();
        if (library_->machine == StubMachine::x86_64) {
            out_.put(std::uint8_t{0xb8}); // mov $100,%eax
            out_.put(std::uint32_t{100});
            out_.put(std::uint8_t{0xc3}); // ret
            out_.align(16);
            text_function_ = out_.size();
            out_.text("\x48\x8d\x05"); // lea 1(%rip),%rax
            out_.put(std::uint32_t{1});
            out_.put(std::uint8_t{0xc3});
        } else {
            out_.put(std::uint32_t{0x52800c80}); // mov w0,#100
            out_.put(std::uint32_t{0xd65f03c0}); // ret
            text_function_ = out_.size();
            out_.put(std::uint32_t{0x10000040}); // adr x0,.+8
            out_.put(std::uint32_t{0xd65f03c0});
        }
        out_.text(kAnswerText);
        out_.put(std::uint8_t{0});
        places_.code_end = out_.size();
    }

    void fill_symbols() {
        Out table;
        table.text(std::string(24, '\0'));
        for (const StubSymbol& symbol : library_->symbols) {
            table.put(strings_.add(symbol.name));
            table.put(std::uint8_t{0x12}); // global function
            table.put(std::uint8_t{0});
            table.put(std::uint16_t{1}); // defined, and moved with the library
            table.put(symbol.answer == StubAnswer::text ? text_function_ : places_.code);
            table.put(std::uint64_t{4});
        }
        out_.bytes().replace(places_.symbols, table.size(), table.bytes());
    }

    void write_dynamic(std::uint32_t soname) {
        out_.align(page_);
        places_.dynamic = out_.size();
        const std::vector<std::pair<std::uint64_t, std::uint64_t>> entries = {
            {14, soname}, // DT_SONAME
            {4, places_.hash},
            {5, places_.strings},
            {10, strings_.bytes().size()},
            {6, places_.symbols},
            {11, 24},
            {0x6ffffff0, places_.versym},
            {0x6ffffffc, places_.verdef},
            {0x6ffffffd, versions_.size() + 1},
            {0, 0},
        };
        for (const auto& [tag, value] : entries) {
            out_.put(tag);
            out_.put(value);
        }
        places_.dynamic_end = out_.size();
    }

    void fill_head() {
        Out head;
        head.text("\x7f"
                  "ELF");
        head.put(std::uint32_t{0x00010102}); // 64 bits, little-endian, version 1, System V
        head.put(std::uint64_t{0});
        head.put(std::uint16_t{3}); // shared object
        head.put(static_cast<std::uint16_t>(library_->machine == StubMachine::x86_64 ? 62 : 183));
        head.put(std::uint32_t{1});
        head.put(std::uint64_t{0}); // no entry point
        head.put(kHeaderSize);
        head.put(std::uint64_t{0}); // no section table
        head.put(std::uint32_t{0});
        head.put(static_cast<std::uint16_t>(kHeaderSize));
        head.put(static_cast<std::uint16_t>(kSegmentSize));
        head.put(static_cast<std::uint16_t>(kSegments));
        head.put(std::uint16_t{64});
        head.put(std::uint32_t{0});
        segment(head, 0, kRead, 0, places_.read_end);
        segment(head, 1, kRead | kExecute, places_.code, places_.code_end);
        segment(head, 2, kRead | kWrite, places_.dynamic, places_.dynamic_end);
        segment(head, 3, kRead | kWrite, places_.dynamic, places_.dynamic_end);
        segment(head, 4, kRead | kWrite, 0, 0);
        out_.bytes().replace(0, head.size(), head.bytes());
    }

    void segment(Out& head,
                 std::size_t index,
                 std::uint32_t flags,
                 std::uint64_t first,
                 std::uint64_t end) const {
        head.put(kSegmentTypes.at(index));
        head.put(flags);
        head.put(first); // file offset and address are equal
        head.put(first);
        head.put(first);
        head.put(end - first);
        head.put(end - first);
        head.put(index < 3 ? page_ : std::uint64_t{8});
    }

    const StubLibrary* library_;
    std::uint64_t page_;
    std::vector<std::string> versions_{};
    Strings strings_{};
    Places places_{};
    std::uint64_t text_function_ = 0;
    Out out_{};
};

} // namespace

std::string write_stub_library(const StubLibrary& library) {
    return Writer{library}.write();
}

} // namespace kb::build
