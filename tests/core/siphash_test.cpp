// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/siphash.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuq {
namespace {

/// Vectors of the reference implementation (vectors.h): key 00..0f, message 00, 01, 02 ...
TEST(Siphash, AgreesWithTheReference)
{
    SipKey key{};
    for (unsigned char i = 0; i < key.size(); ++i) {
        key[i] = i;
    }
    std::string text;
    for (char c = 0; c < 16; ++c) {
        text += c;
    }
    EXPECT_EQ(siphash(key, ""), 0x726fdb47dd0e0e31U);
    EXPECT_EQ(siphash(key, text.substr(0, 1)), 0x74f839c593dc67fdU);
    EXPECT_EQ(siphash(key, text.substr(0, 8)), 0x93f5f5799a932462U);
    EXPECT_EQ(siphash(key, text.substr(0, 15)), 0xa129ca6149be45e5U);
}

} // namespace
} // namespace gpuq
