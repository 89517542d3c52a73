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

} // namespace
} // namespace gpuq
