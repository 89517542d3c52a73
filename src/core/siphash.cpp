// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/siphash.h"

#include <bit>
#include <cstddef>

namespace gpuq {
namespace {

struct State {
    std::uint64_t v0, v1, v2, v3;

    void round()
    {
        v0 += v1;
        v1 = std::rotl(v1, 13) ^ v0;
        v0 = std::rotl(v0, 32);
        v2 += v3;
        v3 = std::rotl(v3, 16) ^ v2;
        v0 += v3;
        v3 = std::rotl(v3, 21) ^ v0;
        v2 += v1;
        v1 = std::rotl(v1, 17) ^ v2;
        v2 = std::rotl(v2, 32);
    }

    void compress(std::uint64_t word)
    {
        v3 ^= word;
        round();
        round();
        v0 ^= word;
    }
};

/// Reads up to eight bytes, little-endian.
template <typename Bytes>
std::uint64_t little_endian(const Bytes& bytes, std::size_t at, std::size_t end)
{
    std::uint64_t word = 0;
    for (std::size_t i = at; i < end; ++i) {
        word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * (i - at));
    }
    return word;
}

} // namespace

std::uint64_t siphash(const SipKey& key, std::string_view text)
{
    const std::uint64_t k0 = little_endian(key, 0, 8);
    const std::uint64_t k1 = little_endian(key, 8, 16);
    State state{k0 ^ 0x736f6d6570736575U, k1 ^ 0x646f72616e646f6dU, k0 ^ 0x6c7967656e657261U,
                k1 ^ 0x7465646279746573U};
    std::size_t at = 0;
    for (; at + 8 <= text.size(); at += 8) {
        state.compress(little_endian(text, at, at + 8));
    }
    state.compress(little_endian(text, at, text.size()) | std::uint64_t{text.size()} << 56);
    state.v2 ^= 0xff;
    for (int i = 0; i < 4; ++i) {
        state.round();
    }
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

} // namespace gpuq
