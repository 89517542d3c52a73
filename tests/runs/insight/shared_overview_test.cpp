// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/shared_overview.h"

#include "core/layout.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/fake_host.h"
#include "fakes/memory_store.h"
#include "fakes/now.h"
#include "runs/insight/overview_record.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t k_owner = 1000, k_user = 100, k_idle = 7;
Inventory one_node()
{
    Inventory made;
    Partition queue;
    queue.name = "short";
    made.partitions = {queue};
    Node node;
    node.name = "n0";
    node.gpus = {{"k80", 8, 5}};
    node.partitions = {"short"};
    node.cpus = 16;
    node.cpus_in_use = 6;
    made.nodes = {node};
    return made;
}

Job running(std::uint32_t id, std::uint32_t uid, int gpus)
{
    Job job;
    job.id = JobId{id};
    job.uid = uid;
    job.state = JobState::running;
    job.ends_at = k_now + 1h;
    job.partition = "short";
    job.held.whole = {{"n0", "k80", gpus}};
    job.name = "line\nbreak";
    return job;
}

Job waiting_job(std::uint32_t id, std::uint32_t uid, std::uint32_t priority,
                const std::string& queue = "short")
{
    Job job;
    job.id = JobId{id};
    job.uid = uid;
    job.state = JobState::pending;
    job.partition = queue;
    job.priority = priority;
    job.reason = "Resources";
    job.gpus = 1;
    job.size.gpus = {{"", 1}};
    return job;
}

AllJobs all_jobs()
{
    return AllJobs{{running(1, k_owner, 2), running(2, k_user, 3), waiting_job(3, k_user, 9),
                    waiting_job(4, k_owner, 5), waiting_job(5, k_owner, 5, "long,short"),
                    waiting_job(6, k_user, 1, "long")}};
}

const std::vector<ReservedGpus> k_reserved{
    {{"r", k_now, k_now + 1h, "n0", "", {"ada"}, {}}, 2, {"n0"}, {"short"}}};

std::string text()
{
    return shared_overview_text("lab", one_node(), all_jobs(), k_reserved, k_now - 1min, k_now,
                                250ms);
}

TEST(SharedOverview, IsForEachUserWhatTheirOwnQueriesWouldGive)
{
    for (const std::uint32_t uid : {k_owner, k_user, k_idle, 10U, 0U}) {
        const auto shared = parse_shared_overview(text(), "lab", uid);
        ASSERT_TRUE(shared);
        Overview own = make_overview("lab", one_node(), all_jobs(), uid, k_now);
        own.reserved = k_reserved;
        own.took = 250ms;
        EXPECT_EQ(to_json(shared->overview), to_json(own)) << uid;
        EXPECT_EQ(shared->checked_at, k_now - 1min);
    }
}

TEST(SharedOverview, OfACutOrOtherFileIsNone)
{
    const std::string whole = text();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(parse_shared_overview(whole.substr(0, size), "lab", k_owner)) << size;
    }
    EXPECT_FALSE(parse_shared_overview(whole, "other", k_owner));
    const std::string rest = whole.substr(whole.find('\n'));
    for (const char* header : {"gpuq-overview 2 1", "gpuq-overview 1 ", "gpuq-overview 1 -1",
                               "gpuq-overview 1 99999999999", "gpuq-overview 1 x"}) {
        EXPECT_FALSE(parse_shared_overview(header + rest, "lab", k_owner)) << header;
    }
    EXPECT_FALSE(parse_shared_overview("gpuq-overview 1 1\n{}\nend\n", "lab", k_owner));
    EXPECT_FALSE(
        parse_shared_overview(whole.substr(0, whole.size() - 4) + "7 []\nend\n", "lab", 7));
}

TEST(SharedOverview, IsOldWhenItsServiceShouldHaveWrittenANewOne)
{
    Overview shared;
    EXPECT_FALSE(is_recent(shared, k_now));
    shared.at = k_now;
    EXPECT_TRUE(is_recent(shared, k_now + 75s));
    EXPECT_FALSE(is_recent(shared, k_now + 76s));
    EXPECT_FALSE(is_recent(shared, k_now - 1s));
    shared.took = 4s; // one in 80 seconds
    EXPECT_TRUE(is_recent(shared, k_now + 175s));
    EXPECT_FALSE(is_recent(shared, k_now + 176s));
    shared.took = 240h;
    EXPECT_FALSE(is_recent(shared, k_now + 1h));
}

/// A user's process with a shared overview made at `at`.
class Shared : public testing::Test {
protected:
    void refresh(Wish::Anew anew = Wish::Anew::no, Time changed = {})
    {
        refresh_overview(m_store, m_cluster, m_host, m_clock, k_owner,
                         {m_clock.now(), anew, changed, [this] {
                              ++m_read;
                              return m_shared;
                          }});
    }
    void share() { m_shared = make_overview("lab", one_node(), m_jobs, k_owner, m_clock.now()); }
    Overview kept() { return kept_overview(m_store, "lab"); }

    fakes::MemoryStore m_store;
    fakes::FakeCluster m_cluster;
    fakes::FakeHost m_host;
    fakes::FakeClock m_clock;
    AllJobs m_jobs = all_jobs();
    std::optional<Overview> m_shared;
    int m_read = 0;
};

TEST_F(Shared, ReplacesAllQueries)
{
    for (int i = 0; i < 20; ++i) {
        share();
        refresh(Wish::Anew::no, m_clock.now());
        EXPECT_EQ(kept().whole_at, m_shared->at);
        m_clock.advance(15s);
    }
    refresh(Wish::Anew::unless_shared);
    EXPECT_TRUE(m_cluster.requests.empty());
    EXPECT_EQ(m_read, 21);
    m_clock.advance(5s);
    refresh(Wish::Anew::always); // the user's key
    EXPECT_FALSE(m_cluster.requests.empty());
    EXPECT_EQ(m_read, 21);
}

TEST_F(Shared, IsNotReadAgainWhileTheCachedOneIsNew)
{
    share();
    refresh();
    m_clock.advance(14s);
    refresh();
    EXPECT_EQ(m_read, 1);
}

TEST_F(Shared, IsReplacedByOwnQueriesWhenItIsGone)
{
    share();
    refresh();
    m_shared.reset();
    m_clock.advance(31s);
    refresh();
    EXPECT_EQ(m_cluster.requests, (std::vector<std::string>{"inventory", "own_jobs"}));
    EXPECT_EQ(kept().at, m_clock.now());
}

TEST_F(Shared, DoesNotReplaceNewerData)
{
    share();
    m_clock.advance(40s);
    const std::vector<Job> own = {running(9, k_owner, 1)};
    m_cluster.jobs = own;
    own_jobs_now(m_store, m_cluster, m_clock);
    const Time queried = m_clock.now();
    refresh();
    EXPECT_EQ(kept().at, m_shared->at);
    EXPECT_EQ(kept().jobs_at, queried);
    ASSERT_EQ(kept().jobs.size(), 1U);
    EXPECT_EQ(kept().jobs[0].job.id, JobId{9});
}

} // namespace
} // namespace gpuq
