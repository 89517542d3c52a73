// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/notices.h"

#include "cli/fake_services.h"
#include "runs/run_on_disk.h"

#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

class NoticesTest : public testing::Test {
protected:
    NoticesTest()
    {
        m_services.set.notify = {"tell", "gpuq: {event}", "{text}", "{other}", "{run"};
    }

    const auto& given() const { return m_services.machine.unattended; }

    FakeServices m_services;
    gpuq::Run m_run = fakes::some_run(m_services.time.now(), "train");
};

TEST_F(NoticesTest, ExecuteTheCommandWithValuesInPlaceOfNamesAndAsVariables)
{
    Notices notices(m_services);
    notices.give(start_notice(m_run, JobId{7}));
    ASSERT_EQ(given().size(), 1U);
    EXPECT_EQ(given()[0].arguments,
              (Strings{"tell", "gpuq: start", "run 7 (train) has started", "{other}", "{run"}));
    EXPECT_EQ(given()[0].variables,
              (Strings{"GPUQ_NOTICE_EVENT=start", "GPUQ_NOTICE_KEY=" + m_run.key.text(),
                       "GPUQ_NOTICE_RUN=7", "GPUQ_NOTICE_TEXT=run 7 (train) has started"}));
    EXPECT_EQ(given()[0].limit, 30s);
}

TEST_F(NoticesTest, AreFailuresIfTheRunNeitherSucceededNorWasStopped)
{
    const auto event_of = [&](int status, Cause cause) {
        return end_notice(m_run, JobId{7}, {status, cause, "", Time{}}).event;
    };
    EXPECT_EQ(event_of(0, Cause::finished), RunNotice::Event::end);
    EXPECT_EQ(event_of(123, Cause::stopped), RunNotice::Event::end);
    EXPECT_EQ(event_of(123, Cause::cancelled), RunNotice::Event::end);
    EXPECT_EQ(event_of(1, Cause::finished), RunNotice::Event::failure);
    EXPECT_EQ(event_of(124, Cause::time_limit), RunNotice::Event::failure);
    EXPECT_EQ(end_notice(m_run, JobId{7}, {3, Cause::finished, "", Time{}}).text,
              "run 7 (train) ended with status 3");
}

TEST_F(NoticesTest, AreNotRepeatedUnlessSomethingElseHappenedInBetween)
{
    Notices notices(m_services);
    const RunNotice warning = warning_notice(m_run, JobId{7}, "15 minutes left");
    EXPECT_EQ(warning.text, "run 7 (train): 15 minutes left");
    notices.give(warning);
    notices.give(warning);
    EXPECT_EQ(given().size(), 1U);
    notices.give(end_notice(m_run, JobId{7}, {0, Cause::finished, "", Time{}}));
    notices.give(warning);
    EXPECT_EQ(given().size(), 3U);
}

TEST_F(NoticesTest, ContainNoControlCharactersAndInsertEachValueOnce)
{
    m_run.request.name = "\x1b[31m{event}\n;rm -rf";
    Notices(m_services).give(start_notice(m_run, JobId{7}));
    ASSERT_EQ(given().size(), 1U);
    const std::string& text = given()[0].arguments[2];
    EXPECT_EQ(text.find_first_of("\x1b\n"), std::string::npos) << text;
    EXPECT_NE(text.find("{event}"), std::string::npos) << text;
    EXPECT_EQ(given()[0].variables[3], "GPUQ_NOTICE_TEXT=" + text);
    m_run.request.name = std::string(100'000, 'x');
    Notices(m_services).give(start_notice(m_run, JobId{7}));
    EXPECT_LE(given()[1].arguments[2].size(), 1010U);
}

TEST_F(NoticesTest, DoNothingWithoutACommandAndInsideOne)
{
    m_services.variables["GPUQ_NOTICE_EVENT"] = "end";
    Notices(m_services).give(start_notice(m_run, JobId{7}));
    m_services.variables.clear();
    m_services.set.notify.reset();
    Notices(m_services).give(start_notice(m_run, JobId{7}));
    EXPECT_TRUE(given().empty());
}

} // namespace
} // namespace gpuq::cli
