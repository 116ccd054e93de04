// SPDX-License-Identifier: Apache-2.0
#include "digest/blake3.hpp"

#include "digest/digest.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>

namespace kb::digest {
namespace {

std::string hex(const Blake3Value& value) {
    return Digest{value}.hex();
}

TEST_CASE("BLAKE3 equals the published vectors", "[digest][blake3]") {
    // Of the authors' test_vectors.json: lengths around every border of the tree.
    const auto [size, plain, keyed] = GENERATE(table<std::size_t, const char*, const char*>({
        {0,
         "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
         "92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26"},
        {1,
         "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
         "6d7878dfff2f485635d39013278ae14f1454b8c0a3a2d34bc1ab38228a80c95b"},
        {1023,
         "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
         "c951ecdf03288d0fcc96ee3413563d8a6d3589547f2c2fb36d9786470f1b9d6e"},
        {1024,
         "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
         "75c46f6f3d9eb4f55ecaaee480db732e6c2105546f1e675003687c31719c7ba4"},
        {1025,
         "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
         "357dc55de0c7e382c900fd6e320acc04146be01db6a8ce7210b7189bd664ea69"},
        {2048,
         "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a",
         "879cf1fa2ea0e79126cb1063617a05b6ad9d0b696d0d757cf053439f60a99dd1"},
        {3073,
         "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3",
         "68dede9bef00ba89e43f31a6825f4cf433389fedae75c04ee9f0cf16a427c95a"},
        {4096,
         "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969",
         "befc660aea2f1718884cd8deb9902811d332f4fc4a38cf7c7300d597a081bfc0"},
        {4097,
         "9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995",
         "00df940cd36bb9fa7cbbc3556744e0dbc8191401afe70520ba292ee3ca80abbc"},
        {8193,
         "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b",
         "954a2a75420c8d6547e3ba5b98d963e6fa6491addc8c023189cc519821b4a1f5"},
        {31744,
         "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47",
         "efa53b389ab67c593dba624d898d0f7353ab99e4ac9d42302ee64cbf9939a419"},
        {102400,
         "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085",
         "1c35d1a5811083fd7119f5d5d1ba027b4d01c0c6c49fb6ff2cf75393ea5db4a7"},
    }));
    std::string input(size, '\0');
    for (std::size_t i = 0; i < input.size(); ++i) {
        input[i] = static_cast<char>(i % 251);
    }
    Blake3Value key{};
    std::ranges::copy(std::string_view{"whats the Elvish word for friend"}, key.begin());
    CHECK(hex(blake3(as_bytes(input))) == plain);
    CHECK(hex(blake3_keyed(key, as_bytes(input))) == keyed);
}

} // namespace
} // namespace kb::digest
