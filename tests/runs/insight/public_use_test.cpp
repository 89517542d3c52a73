// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/public_use.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using PublicRows = std::vector<PublicUse>;

/// A job of `user` for `seconds` on one GPU.
UseRecord job(const std::string& account, const std::string& user, int seconds)
{
    static std::uint32_t id = 0;
    UseRecord record;
    record.use = {JobId{++id}, user, account, "short", std::chrono::seconds(seconds), 1, {}};
    return record;
}

TEST(PublicUse, AddsUpThoseWithFewUsers)
{
    const std::vector<UseRecord> records = {
        job("a", "u1", 100), job("a", "u2", 100), job("b", "u3", 30), job("b", "u3", 1),
        job("c", "u4", 40),  job("d", "u1", 10),  job("d", "u2", 1)};
    EXPECT_EQ(public_use(records, UseBy::account, 2),
              (PublicRows{{"a", 200}, {"d", 11}, {std::nullopt, 71}}));
}

TEST(PublicUse, HidesASingleOneBehindTheSmallestOther)
{
    // Without "b", the difference to the sum of another table would be that of u9.
    const std::vector<UseRecord> records = {job("a", "u1", 100), job("a", "u2", 100),
                                            job("b", "u3", 30), job("b", "u4", 1),
                                            job("c", "u9", 500)};
    EXPECT_EQ(public_use(records, UseBy::account, 2),
              (PublicRows{{"a", 200}, {std::nullopt, 531}}));
    // One user of two accounts is still one.
    EXPECT_EQ(public_use({job("a", "u1", 9), job("b", "u1", 9)}, UseBy::account, 2), std::nullopt);
    EXPECT_EQ(public_use({}, UseBy::account, 2), PublicRows{});
}

TEST(PublicUse, KeepsWhatTheGpusDid)
{
    UseRecord one = job("a", "u1", 10);
    one.whole = true;
    one.comment = "gpuq:KEY busy=7 idle=2 unknown=1";
    EXPECT_EQ(public_use({one, job("a", "u2", 5)}, UseBy::account, 2),
              (PublicRows{{"a", 15, 7, 2}}));
}

} // namespace
} // namespace gpuq
