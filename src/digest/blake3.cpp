// SPDX-License-Identifier: Apache-2.0
#include "digest/blake3.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

// After the specification "BLAKE3: one function, fast everywhere", section 2. The same code works
// on one word and on four lanes: the tree's leaves are independent, so four are hashed at a time.
namespace kb::digest {

namespace {

using Word = std::uint32_t;
using Lanes = Word __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 4;

constexpr std::size_t kBlock = 64;
constexpr std::size_t kLeaf = 1024;

enum Flag : Word { kLeafStart = 1, kLeafEnd = 2, kParent = 4, kRoot = 8, kKeyed = 16 };

/// Eight words: a key or a chaining value.
using Words = std::array<Word, 8>;

constexpr Words kIv = {
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
using Schedule = std::array<std::size_t, 16>;
constexpr std::size_t kRounds = 7;

/// Which message words each round mixes in: the specification's permutation, applied again and
/// again.
constexpr std::array<Schedule, kRounds> make_schedules() {
    constexpr Schedule kPermutation = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
    std::array<Schedule, kRounds> out{};
    for (std::size_t i = 0; i < kPermutation.size(); ++i) {
        out[0][i] = i;
    }
    for (std::size_t round = 1; round < kRounds; ++round) {
        for (std::size_t i = 0; i < kPermutation.size(); ++i) {
            out[round][i] = out[round - 1][kPermutation[i]];
        }
    }
    return out;
}

constexpr std::array<Schedule, kRounds> kSchedules = make_schedules();

template <typename W>
using State = std::array<W, 16>;

template <int kBits, typename W>
void rotate_right(W& x) {
    x = (x >> kBits) | (x << (32 - kBits));
}

template <std::size_t kA, std::size_t kB, std::size_t kC, std::size_t kD, typename W>
void mix(State<W>& v, const W& x, const W& y) {
    v[kA] = v[kA] + v[kB] + x;
    v[kD] = v[kD] ^ v[kA];
    rotate_right<16>(v[kD]);
    v[kC] = v[kC] + v[kD];
    v[kB] = v[kB] ^ v[kC];
    rotate_right<12>(v[kB]);
    v[kA] = v[kA] + v[kB] + y;
    v[kD] = v[kD] ^ v[kA];
    rotate_right<8>(v[kD]);
    v[kC] = v[kC] + v[kD];
    v[kB] = v[kB] ^ v[kC];
    rotate_right<7>(v[kB]);
}

template <std::size_t kRound, typename W>
void mix_round(State<W>& v, const State<W>& m) {
    constexpr Schedule kWords = kSchedules[kRound];
    mix<0, 4, 8, 12>(v, m[kWords[0]], m[kWords[1]]);
    mix<1, 5, 9, 13>(v, m[kWords[2]], m[kWords[3]]);
    mix<2, 6, 10, 14>(v, m[kWords[4]], m[kWords[5]]);
    mix<3, 7, 11, 15>(v, m[kWords[6]], m[kWords[7]]);
    mix<0, 5, 10, 15>(v, m[kWords[8]], m[kWords[9]]);
    mix<1, 6, 11, 12>(v, m[kWords[10]], m[kWords[11]]);
    mix<2, 7, 8, 13>(v, m[kWords[12]], m[kWords[13]]);
    mix<3, 4, 9, 14>(v, m[kWords[14]], m[kWords[15]]);
}

/// `v` is the state as the specification sets it up; afterwards its first eight words are the new
/// chaining value.
template <typename W>
void compress(State<W>& v, const State<W>& m) {
    mix_round<0>(v, m);
    mix_round<1>(v, m);
    mix_round<2>(v, m);
    mix_round<3>(v, m);
    mix_round<4>(v, m);
    mix_round<5>(v, m);
    mix_round<6>(v, m);
    for (std::size_t i = 0; i < 8; ++i) {
        v[i] = v[i] ^ v[i + 8];
    }
}

Word load_word(const std::byte* bytes) {
    return std::to_integer<Word>(bytes[0]) | std::to_integer<Word>(bytes[1]) << 8U |
           std::to_integer<Word>(bytes[2]) << 16U | std::to_integer<Word>(bytes[3]) << 24U;
}

Words compress_block(
    const Words& chain, const State<Word>& block, std::uint64_t counter, Word size, Word flags) {
    State<Word> v{};
    std::ranges::copy(chain, v.begin());
    std::copy_n(kIv.begin(), 4, v.begin() + 8);
    v[12] = static_cast<Word>(counter);
    v[13] = static_cast<Word>(counter >> 32U);
    v[14] = size;
    v[15] = flags;
    compress(v, block);
    Words out{};
    std::copy_n(v.begin(), out.size(), out.begin());
    return out;
}

class Tree {
public:
    Tree(const Words& key, Word mode) : key_{key}, mode_{mode} {}

    [[nodiscard]] Words root(Bytes input) const {
        if (input.size() <= kLeaf) {
            return leaf(input, 0, kRoot);
        }
        std::vector<Words> leaves((input.size() + kLeaf - 1) / kLeaf);
        std::size_t done = 0;
        for (; (done + kLanes) * kLeaf <= input.size(); done += kLanes) {
            four_leaves(input.subspan(done * kLeaf, kLanes * kLeaf), done, &leaves[done]);
        }
        for (; done < leaves.size(); ++done) {
            const Bytes rest = input.subspan(done * kLeaf);
            leaves[done] = leaf(rest.first(std::min(rest.size(), kLeaf)), done, 0);
        }
        return join(leaves, kRoot);
    }

private:
    [[nodiscard]] Words leaf(Bytes input, std::uint64_t counter, Word last_flags) const {
        Words chain = key_;
        Word flags = mode_ | kLeafStart;
        while (true) {
            const Bytes part = input.first(std::min(input.size(), kBlock));
            input = input.subspan(part.size());
            std::array<std::byte, kBlock> padded{};
            std::ranges::copy(part, padded.begin());
            State<Word> block{};
            for (std::size_t i = 0; i < block.size(); ++i) {
                block[i] = load_word(&padded[4 * i]);
            }
            if (input.empty()) {
                flags |= kLeafEnd | last_flags;
            }
            chain = compress_block(chain, block, counter, static_cast<Word>(part.size()), flags);
            if (input.empty()) {
                return chain;
            }
            flags = mode_;
        }
    }

    /// Four whole leaves, one a lane.
    void four_leaves(Bytes input, std::uint64_t counter, Words* out) const {
        std::array<Lanes, 8> chain{};
        for (std::size_t i = 0; i < chain.size(); ++i) {
            chain[i] = Lanes{} + key_[i];
        }
        Lanes low{};
        Lanes high{};
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            low[lane] = static_cast<Word>(counter + lane);
            high[lane] = static_cast<Word>((counter + lane) >> 32U);
        }
        for (std::size_t at = 0; at < kLeaf; at += kBlock) {
            State<Lanes> block{};
            for (std::size_t i = 0; i < block.size(); ++i) {
                const std::byte* word = &input[at + 4 * i];
                block[i] = Lanes{load_word(word),
                                 load_word(word + kLeaf),
                                 load_word(word + 2 * kLeaf),
                                 load_word(word + 3 * kLeaf)};
            }
            Word flags = mode_;
            flags |= at == 0 ? Word{kLeafStart} : 0U;
            flags |= at + kBlock == kLeaf ? Word{kLeafEnd} : 0U;
            State<Lanes> v{};
            std::ranges::copy(chain, v.begin());
            for (std::size_t i = 0; i < 4; ++i) {
                v[8 + i] = Lanes{} + kIv[i];
            }
            v[12] = low;
            v[13] = high;
            v[14] = Lanes{} + Word{kBlock};
            v[15] = Lanes{} + flags;
            compress(v, block);
            std::copy_n(v.begin(), chain.size(), chain.begin());
        }
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            for (std::size_t i = 0; i < chain.size(); ++i) {
                out[lane][i] = chain[i][lane];
            }
        }
    }

    /// The left side of each parent is the largest whole tree.
    [[nodiscard]] Words join(std::span<const Words> parts, Word last_flags) const {
        if (parts.size() == 1) {
            return parts[0];
        }
        const std::size_t left = std::bit_floor(parts.size() - 1);
        State<Word> block{};
        std::ranges::copy(join(parts.first(left), 0), block.begin());
        std::ranges::copy(join(parts.subspan(left), 0), block.begin() + 8);
        return compress_block(key_, block, 0, kBlock, mode_ | kParent | last_flags);
    }

    Words key_;
    Word mode_;
};

Blake3Value to_value(const Words& words) {
    Blake3Value out{};
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<std::uint8_t>(words[i / 4] >> (8 * (i % 4)));
    }
    return out;
}

} // namespace

Blake3Value blake3(Bytes input) {
    return to_value(Tree{kIv, 0}.root(input));
}

Blake3Value blake3_keyed(const Blake3Value& key, Bytes input) {
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = load_word(std::as_bytes(std::span{key}).subspan(4 * i, 4).data());
    }
    return to_value(Tree{words, kKeyed}.root(input));
}

} // namespace kb::digest
