// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/log_tail.h"

#include "core/layout.h"
#include "fakes/memory_store.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

class Tail : public testing::Test {
protected:
    void write(const std::string& text, LinkNumber link = LinkNumber{1})
    {
        ASSERT_TRUE(store.write(layout::log(key, link, Stream::out), text));
    }
    std::optional<LogTail::News> next()
    {
        auto news = tail.next();
        EXPECT_TRUE(news);
        return news ? *news : std::nullopt;
    }

    fakes::MemoryStore store;
    RunKey key = *RunKey::parse("20261123T072953.601Z-9ace793821375167");
    LogTail tail{store, key, Stream::out};
};

TEST_F(Tail, GivesWhatIsNew)
{
    auto news = next();
    ASSERT_TRUE(news);
    EXPECT_TRUE(news->anew);
    EXPECT_EQ(news->bytes, "");
    EXPECT_FALSE(next());
    write("one\n");
    EXPECT_EQ(next()->bytes, "one\n");
    write("one\ntwo");
    news = next();
    EXPECT_EQ(news->bytes, "two");
    EXPECT_FALSE(news->anew);
    EXPECT_FALSE(next());
}

TEST_F(Tail, BeginsAtTheEndOfALargeFile)
{
    std::string large;
    while (large.size() < 3 * LogTail::k_window) {
        large += "line " + std::to_string(large.size()) + "\n";
    }
    write(large);
    const auto news = next();
    EXPECT_TRUE(news->anew);
    EXPECT_EQ(news->skipped, large.size() - news->bytes.size());
    EXPECT_GE(news->skipped, large.size() - LogTail::k_window);
    EXPECT_EQ(news->bytes.substr(0, 5), "line "); // starts with a whole line
    EXPECT_TRUE(large.ends_with(news->bytes));
    write(large + large);
    EXPECT_TRUE(next()->anew); // grew faster than it was read
}

TEST_F(Tail, HasTheTimesOfTheBytes)
{
    using Marks = std::vector<LogTimes::Mark>;
    const auto at = [](int milliseconds) { return Time(std::chrono::milliseconds(milliseconds)); };
    write("one\n");
    EXPECT_EQ(next()->times, Marks{}) << "not written yet";
    store.append(layout::times(key, LinkNumber{1}), "1000 4 0\n");
    EXPECT_EQ(next()->times, (Marks{{0, Time()}, {4, at(1000)}}));
    EXPECT_FALSE(next());
    write("two\n", LinkNumber{2});
    store.append(layout::times(key, LinkNumber{2}), "5000 4 0\n");
    const auto news = next();
    EXPECT_TRUE(news->anew);
    EXPECT_EQ(news->times, (Marks{{0, Time()}, {4, at(5000)}}));
}

TEST_F(Tail, NoticesAFileThatWasCut)
{
    write("a long line\n");
    (void)next();
    write("new\n");
    const auto news = next();
    EXPECT_TRUE(news->anew);
    EXPECT_EQ(news->bytes, "new\n");
}

TEST_F(Tail, NoticesAnotherFileInItsPlace)
{
    write("the log of before\n");
    EXPECT_EQ(next()->why, LogTail::News::Why::opened);
    write("another one, which is larger\n");
    auto news = next();
    EXPECT_TRUE(news->anew);
    EXPECT_EQ(news->why, LogTail::News::Why::replaced);
    EXPECT_EQ(news->bytes, "another one, which is larger\n");
    write("another one, of equal size!!\n");
    EXPECT_EQ(next()->bytes, "another one, of equal size!!\n");
    write("");
    news = next();
    EXPECT_TRUE(news->anew);
    EXPECT_EQ(news->why, LogTail::News::Why::cut);
    write("and on\n");
    news = next();
    EXPECT_FALSE(news->anew);
    EXPECT_EQ(news->bytes, "and on\n");
}

TEST_F(Tail, GoesOnWithTheNextLink)
{
    write("first link\n");
    (void)next();
    write("second link\n", LinkNumber{2});
    const auto news = next();
    EXPECT_TRUE(news->anew);
    EXPECT_EQ(news->link, LinkNumber{2});
    EXPECT_EQ(news->bytes, "second link\n");
}

/// The next link is created when this one begins: it has a directory, but no output.
TEST_F(Tail, StaysWithTheLinkThatRunsWhileTheNextWaits)
{
    ASSERT_TRUE(store.write(layout::job_json(key, LinkNumber{2}), "{}"));
    write("first link\n");
    const auto news = next();
    ASSERT_TRUE(news);
    EXPECT_EQ(news->link, LinkNumber{1});
    EXPECT_EQ(news->bytes, "first link\n");
    EXPECT_FALSE(next());
}

TEST_F(Tail, FollowsAnotherFile)
{
    const std::string path = "sweeps/S/tries/1/out.log";
    LogTail of_try{store, path};
    EXPECT_EQ((*of_try.next())->bytes, "") << "not there yet";
    ASSERT_TRUE(store.write(path, "step 1\n"));
    EXPECT_EQ((*of_try.next())->bytes, "step 1\n");
    ASSERT_TRUE(store.write(path, "step 1\nstep 2\n"));
    EXPECT_EQ((*of_try.next())->bytes, "step 2\n");
    EXPECT_FALSE(*of_try.next());
}

} // namespace
} // namespace gpuq
