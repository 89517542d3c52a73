// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/progress.h"

#include "core/layout.h"
#include "fakes/memory_store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuq {
namespace {

using Times = std::vector<std::optional<Time>>;

class ReadProgress : public testing::Test {
protected:
    void write(Stream stream, const std::string& text)
    {
        m_store.append(layout::log(m_key, m_link, stream), text);
    }
    void note(int seconds)
    {
        const auto size = [&](Stream stream) {
            const auto found = m_store.size(layout::log(m_key, m_link, stream));
            return std::to_string(found ? *found : 0);
        };
        m_store.append(layout::times(m_key, m_link), std::to_string(1000 * seconds) + " " +
                                                         size(Stream::out) + " " +
                                                         size(Stream::err) + "\n");
    }
    Times times_of(const std::string& tag)
    {
        const LinkProgress read = read_progress(m_store, m_key, m_link, nullptr);
        const telemetry::Series* const series = read.curves.find(tag);
        Times times;
        for (const telemetry::Point& point :
             series != nullptr ? series->recent() : std::vector<telemetry::Point>()) {
            times.push_back(point.at);
        }
        return times;
    }

    fakes::MemoryStore m_store;
    RunKey m_key = *RunKey::parse("20261123T072953.601Z-9ace793821375167");
    LinkNumber m_link{1};
};

Time second(int number)
{
    return Time(std::chrono::seconds(number));
}

TEST_F(ReadProgress, PrintedValuesHaveTheTimesOfTheirLines)
{
    write(Stream::out, "step 1 loss 0.9\nstep 2 lo");
    note(100);
    write(Stream::err, "step 2 val_loss 0.7\n");
    note(101);
    write(Stream::out, "ss 0.8\n");
    note(102);
    write(Stream::out, "step 3 loss 0.7\n"); // not noted yet
    EXPECT_EQ(times_of("loss"), (Times{second(100), second(102), std::nullopt}));
    EXPECT_EQ(times_of("val_loss"), (Times{second(101)}));
}

TEST_F(ReadProgress, TheEndOfALargeLogHasTimesToo)
{
    write(Stream::out, std::string(600 << 10, 'x') + "\n");
    note(100);
    write(Stream::out, "step 8 loss 0.2\n");
    note(103);
    EXPECT_EQ(times_of("loss"), (Times{second(103)}));
}

TEST_F(ReadProgress, OneCurveOverAllLinks)
{
    write(Stream::out, "step 1 loss 0.9\nstep 2 loss 0.8\n");
    m_link = LinkNumber{2};
    write(Stream::out, "step 2 loss 0.7\nstep 3 loss nan\n");
    m_link = LinkNumber{3};
    write(Stream::out, "step 4 loss 0.6 lr 0.1\n");
    const LinkProgress read = read_progress(m_store, m_key, m_link);
    EarlierCurves earlier;
    telemetry::Curves curves = earlier.before(m_store, m_key, m_link, nullptr);
    curves.add(read.curves);
    const telemetry::Series* const loss = curves.find("loss");
    ASSERT_NE(loss, nullptr);
    std::vector<double> values;
    for (const telemetry::Series::Bucket& bucket : loss->buckets()) {
        values.push_back(bucket.low.value);
    }
    EXPECT_EQ(values, (std::vector<double>{0.9, 0.8, 0.7, 0.6}));
    EXPECT_EQ(loss->points(), 5U);
    EXPECT_TRUE(loss->buckets().back().gap_before) << "the value between was none";
    EXPECT_FALSE(loss->not_finite_since()) << "the newest link is well";
    ASSERT_NE(curves.find("lr"), nullptr) << "only the newest link has it";
    ASSERT_TRUE(read.last);
    EXPECT_EQ(read.last->done, 4U);
}

TEST_F(ReadProgress, OneCurveOfTheNewestOfVeryManyLinks)
{
    for (int link = 1; link <= 100; ++link) {
        m_link = LinkNumber{link};
        write(Stream::out, "step " + std::to_string(link) + " loss 0.5\n");
    }
    EarlierCurves earlier;
    const telemetry::Series* const loss =
        earlier.before(m_store, m_key, m_link, nullptr).find("loss");
    ASSERT_NE(loss, nullptr);
    EXPECT_EQ(loss->first()->step, 68);
    EXPECT_EQ(loss->last()->step, 99);
}

TEST_F(ReadProgress, EndedLinksAreReadOnce)
{
    const auto last = [&](EarlierCurves& earlier) {
        const telemetry::Series* const loss =
            earlier.before(m_store, m_key, m_link, nullptr).find("loss");
        return loss == nullptr ? -1 : loss->last()->step;
    };
    EarlierCurves earlier;
    EXPECT_EQ(last(earlier), -1) << "there is none before the first";
    write(Stream::out, "step 1 loss 0.9\n");
    m_link = LinkNumber{2};
    EXPECT_EQ(last(earlier), 1);
    m_link = LinkNumber{1};
    write(Stream::out, "step 2 loss 0.8\n");
    m_link = LinkNumber{2};
    EXPECT_EQ(last(earlier), 1) << "not again";
    write(Stream::out, "step 3 loss 0.7\n");
    m_link = LinkNumber{3};
    EXPECT_EQ(last(earlier), 3) << "the next";
    EarlierCurves other;
    EXPECT_EQ(last(other), 3);
}

} // namespace
} // namespace gpuq
