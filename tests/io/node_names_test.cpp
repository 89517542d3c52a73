// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/node_names.h"

#include "core/layout.h"
#include "io/private_dir.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace gpuq {
namespace {

const RunKey k_key = RunKey::make(Time{}, {1, 2, 3, 4, 5, 6, 7, 8});
constexpr unsigned k_largest = std::numeric_limits<unsigned>::max();
const std::string k_secret = "000102030405060708090a0b0c0d0e0f";

TEST(NodeNames, CarryATagThatTheKeyDoesNotTell)
{
    const NodeNames names(k_secret), others("100102030405060708090a0b0c0d0e0f");
    const auto sockets = names.sockets(1000, k_key, {1});
    const auto directories = names.directories("krb5", 1000, k_key, {1});
    ASSERT_EQ(sockets.size(), 4U);
    ASSERT_EQ(directories.size(), 3U);
    std::set<std::string> all(directories.begin(), directories.end());
    all.insert(sockets.begin(), sockets.end());
    for (const auto& list : {others.sockets(1000, k_key, {1}), names.sockets(1000, k_key, {2})}) {
        all.insert(list.begin(), list.begin() + 3);
    }
    const auto next = names.directories("krb5", 1000, k_key, {2});
    all.insert(next.begin(), next.end());
    EXPECT_EQ(all.size(), 4U + 3U + 6U + 3U);
    for (const std::string& directory : directories) {
        EXPECT_EQ(directory.find(k_key.text()), std::string::npos);
        EXPECT_TRUE(is_private_dir_name(directory.substr(5), 1000)) << directory;
        EXPECT_FALSE(is_private_dir_name(directory.substr(5), 100)) << directory;
    }
}

TEST(NodeNames, AreTheSameForAllWhoReadTheSecret)
{
    EXPECT_EQ(NodeNames(k_secret).sockets(1000, k_key, {1}),
              NodeNames(k_secret).sockets(1000, k_key, {1}));
}

TEST(NodeNames, FindASupervisorOfAnEarlierVersion)
{
    EXPECT_EQ(NodeNames(k_secret).sockets(1000, k_key, {7}).back(),
              layout::socket(1000, k_key, {7}));
    for (const char* text : {"", "0001", "x00102030405060708090a0b0c0d0e0f"}) {
        const NodeNames names(text);
        EXPECT_FALSE(names.has_secret());
        EXPECT_EQ(names.sockets(1000, k_key, {7}),
                  std::vector<std::string>{layout::socket(1000, k_key, {7})});
    }
}

TEST(NodeNames, FitASocketAddress)
{
    for (const std::string& name : NodeNames(k_secret).sockets(k_largest, k_key, {99})) {
        EXPECT_LT(name.size(), 107U);
    }
}

} // namespace
} // namespace gpuq
