// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace gpuq {
namespace {

Result<int> half(int number)
{
    if (number % 2 != 0) {
        return fail(Error::Kind::usage, "odd");
    }
    return number / 2;
}

Result<int> quarter(int number)
{
    TRY_ASSIGN(const int one_half, half(number));
    TRY_ASSIGN(const int one_quarter, half(one_half));
    return one_quarter;
}

Result<void> check_even(int number)
{
    TRY(half(number));
    return {};
}

TEST(Result, CarriesAValueOrAnError)
{
    EXPECT_EQ(*quarter(8), 2);
    EXPECT_EQ(quarter(6).error(), fail(Error::Kind::usage, "odd"));
    EXPECT_TRUE(check_even(2));
    EXPECT_EQ(check_even(3).error().text, "odd");
}

TEST(Result, MovesWhatCanNotBeCopied)
{
    Result<std::unique_ptr<int>> owner = std::make_unique<int>(7);
    const std::unique_ptr<int> taken = *std::move(owner);
    EXPECT_EQ(*taken, 7);
}

TEST(ExitStatus, IsTheContracts)
{
    using Kind = Error::Kind;
    const auto status = [](Kind kind) { return static_cast<int>(exit_status_of(kind)); };
    EXPECT_EQ(status(Kind::usage), 2);
    EXPECT_EQ(status(Kind::missing), 2);
    EXPECT_EQ(status(Kind::lost), 119);
    EXPECT_EQ(status(Kind::unreachable), 120);
    EXPECT_EQ(status(Kind::busy), 120);
    EXPECT_EQ(status(Kind::denied), 121);
    EXPECT_EQ(status(Kind::max_wait), 122);
    EXPECT_EQ(status(Kind::stopped), 123);
    EXPECT_EQ(status(Kind::time_limit), 124);
    EXPECT_EQ(status(Kind::internal), 125);
    EXPECT_EQ(status(Kind::io), 125);
    EXPECT_EQ(status(Kind::not_executable), 126);
    EXPECT_EQ(status(Kind::not_found), 127);
}

} // namespace
} // namespace gpuq
