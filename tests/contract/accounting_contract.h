// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/accounting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

/// The contract of Accounting, checked against the real implementation and the fake.
namespace gpuq {

/// Makes an Accounting with a job on two GPUs that has just ended.
struct AccountingMaker {
    struct Made {
        std::shared_ptr<Accounting> accounting;
        JobId job;
        std::string queue;
    };
    std::string name;
    std::function<Made()> make;
};

inline void PrintTo(const AccountingMaker& maker, std::ostream* out)
{
    *out << maker.name;
}

class AccountingContract : public ::testing::TestWithParam<AccountingMaker> {
protected:
    static UseQuestion last_hour()
    {
        const Time now =
            std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
        return {now - std::chrono::hours(1), now + std::chrono::minutes(1), {}, {}};
    }

    AccountingMaker::Made m_made = GetParam().make();
    Accounting& m_accounting = *m_made.accounting;
};

TEST_P(AccountingContract, TellsWhatAJobHad)
{
    const auto uses = m_accounting.use(last_hour());
    ASSERT_TRUE(uses) << uses.error().text;
    const auto mine = std::find_if(uses->begin(), uses->end(),
                                   [&](const JobUse& one) { return one.id == m_made.job; });
    ASSERT_NE(mine, uses->end());
    EXPECT_EQ(mine->gpus, 2);
    EXPECT_GE(mine->elapsed.count(), 1);
    EXPECT_EQ(mine->queue, m_made.queue);
    EXPECT_NE(mine->user, "");
}

TEST_P(AccountingContract, RefusesNamesThatNobodyKnows)
{
    UseQuestion question = last_hour();
    question.users = {m_accounting.use(question)->front().user, "nobody-of-this-name"};
    EXPECT_EQ(m_accounting.use(question).error().kind, Error::Kind::missing);
    question.users.pop_back();
    question.accounts = {"no-such-account"};
    EXPECT_EQ(m_accounting.use(question).error().kind, Error::Kind::missing);
}

TEST_P(AccountingContract, CountsOnlyThoseWhoAreNamed)
{
    UseQuestion question = last_hour();
    const auto is_mine = [&](const JobUse& one) { return one.id == m_made.job; };
    const auto all_users = m_accounting.use(question).value();
    const auto mine = std::find_if(all_users.begin(), all_users.end(), is_mine);
    ASSERT_NE(mine, all_users.end());
    question.users = {mine->user};
    question.accounts = {mine->account};
    const auto named = m_accounting.use(question).value();
    EXPECT_TRUE(std::any_of(named.begin(), named.end(), is_mine));
    EXPECT_TRUE(std::all_of(named.begin(), named.end(),
                            [&](const JobUse& one) { return one.user == mine->user; }));
}

TEST_P(AccountingContract, TellsTheAccountsOfAUserAndRefusesOneWhomNobodyKnows)
{
    const auto uses = m_accounting.use(last_hour()).value();
    const auto grants = m_accounting.grants(uses.front().user);
    ASSERT_TRUE(grants) << grants.error().text;
    EXPECT_TRUE(std::any_of(grants->begin(), grants->end(), [&](const AccountGrants& one) {
        return one.account == uses.front().account;
    }));
    EXPECT_EQ(m_accounting.grants("nobody-of-this-name").error().kind, Error::Kind::missing);
}

TEST_P(AccountingContract, KnowsAPastJobAndSaysMissingForOneThatNeverWas)
{
    EXPECT_EQ(m_accounting.past_job(m_made.job).value().state, JobState::completed);
    EXPECT_EQ(m_accounting.past_job(JobId{4000000}).error().kind, Error::Kind::missing);
}

} // namespace gpuq
