// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/query.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace gpuq::slurm {
namespace {

using namespace std::chrono_literals;

TEST(Query, AnswersKeepTheirValuesThroughTheProcess)
{
    const std::vector<UseRecord> records = {
        {{JobId{7}, "ada", "physics", "short", 90s, 3, {{"k80", 2}, {"a100", 1}}},
         true,
         "gpuq:KEY busy=1\tidle=2\nunknown=3",
         16384,
         0},
        {}};
    const auto back = decoded_answer<std::vector<UseRecord>>(
        encoded_answer(Result<std::vector<UseRecord>>(records)));
    ASSERT_TRUE(back && *back);
    EXPECT_EQ(**back, records);
}

TEST(Query, AGrantOfMoreThanACenturyIsKept)
{
    const std::vector<Association> all = {{"lab", "", "root", 600'000'000, 90'000'000'000}};
    const auto back = decoded_answer<std::vector<Association>>(
        encoded_answer(Result<std::vector<Association>>(all)));
    ASSERT_TRUE(back && *back);
    EXPECT_EQ(**back, all);
}

TEST(Query, AnErrorKeepsItsKindAndText)
{
    const Error error{Error::Kind::missing, "accounting has no job 7"};
    const auto back = decoded_answer<PastJob>(encoded_answer(Result<PastJob>(error)));
    ASSERT_TRUE(back && !*back);
    EXPECT_EQ(back->error(), error);
}

TEST(Query, AnswersThatAreCutOrOfAnotherTypeAreNone)
{
    const std::string bytes = encoded_answer(Result<PastJob>(PastJob{JobId{7}}));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(decoded_answer<PastJob>(bytes.substr(0, size))) << size;
    }
    EXPECT_FALSE(decoded_answer<PastJob>(bytes + "x"));
    EXPECT_FALSE(decoded_answer<NodeHistory>(bytes));
}

TEST(Query, AProcessThatFailsOrIsSilentGivesNoAnswer)
{
    EXPECT_EQ(output_of_query("/bin/false", QueryKind::use, "", 10s), std::nullopt);
    EXPECT_EQ(output_of_query("/no/such/program", QueryKind::use, "", 10s), std::nullopt);
    EXPECT_EQ(output_of_query("/bin/true", QueryKind::use, "", 10s), "");
}

TEST(Query, AProcessThatHangsIsKilledAtTheLimit)
{
    std::string directory = ::testing::TempDir() + "query-XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    const std::string program = directory + "/hang";
    std::ofstream(program) << "#!/bin/sh\nexec sleep 100\n";
    ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(output_of_query(program, QueryKind::use, "", 20ms), std::nullopt);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 50s);
    std::filesystem::remove_all(directory);
}

} // namespace
} // namespace gpuq::slurm
