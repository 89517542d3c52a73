// SPDX-License-Identifier: GPL-2.0-or-later
// State directories as earlier versions of gpuq wrote them, in formats/SCHEMA. Only additions are
// allowed; never change one. Runs started by an older gpuq must be listed, read and ended correctly
// by the current version.
#include "core/layout.h"
#include "core/timestamp.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/memory_store.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "runs/find.h"
#include "runs/log_reader.h"
#include "runs/query_status.h"
#include "runs/records/record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

class FirstFormat : public ::testing::Test {
protected:
    fakes::MemoryStore m_store;
    fakes::FakeClock m_clock{time_from_iso8601("2026-11-21T23:58:05.000000Z").value()};
    fakes::FakeCluster m_cluster;
    fakes::FakeAccounting m_accounting;
    StatusSources m_services{m_store, m_clock, [this] { return Result<Cluster*>(&m_cluster); },
                             [this] { return Result<Accounting*>(&m_accounting); }};

    void SetUp() override
    {
        m_cluster.cluster_name = "local";
        const std::filesystem::path top = std::filesystem::path(GPUQ_FORMATS_DIR) / "1";
        for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
            if (entry.is_regular_file()) {
                std::ostringstream content;
                content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
                m_store.append(entry.path().lexically_relative(top), content.str());
            }
        }
    }

    RunKey key(const std::string& word) { return find_run(m_store, word).value(); }

    void slurm_has(const RunKey& key, std::uint32_t id, JobState state)
    {
        Job job;
        job.id = JobId{id};
        job.comment = job_comment(key);
        job.state = state;
        job.batch = true;
        m_cluster.jobs.push_back(job);
    }

    std::string log_of(const RunKey& key, Writer writer)
    {
        LogReader reader(m_store, key);
        std::string all;
        for (int piece = 0; piece < 100; ++piece) {
            const log::Item item = reader.next(writer, m_clock.steady()).value();
            if (const auto* output = std::get_if<log::Output>(&item)) {
                all += (output->stream == Stream::out ? "o " : "e ") + output->bytes;
            } else if (std::holds_alternative<log::End>(item) ||
                       std::holds_alternative<log::Wait>(item)) {
                break;
            }
        }
        return all;
    }
};

TEST_F(FirstFormat, OfARunThatHasEnded)
{
    const RunStatus status = query_run(m_services, key("train"));
    EXPECT_EQ(status.state, RunState::ended);
    EXPECT_EQ(status.ending.value().status, 3);
    EXPECT_EQ(status.ending->cause, Cause::finished);
    EXPECT_EQ(status.last_lines, "warn\n");
    EXPECT_EQ(status.host, "n0");
    EXPECT_EQ(status.job.value().job, JobId{8});
    const gpuq::Run& run = status.run.value();
    EXPECT_EQ(run.request.program.front(), "sh");
    EXPECT_EQ(run.request.walltime, 30min);
    EXPECT_EQ(run.request.gpus.count, 1);
    EXPECT_EQ(run.user, "ada");
    EXPECT_EQ(run.version, "0.1.0");
    EXPECT_EQ(log_of(status.key, Writer::gone), "o epoch 1\nepoch 2\ne warn\n");
    EXPECT_TRUE(m_cluster.requests.empty());
}

TEST_F(FirstFormat, OfARunThatRuns)
{
    const RunStatus status = query_run(m_services, key("9"));
    EXPECT_EQ(status.state, RunState::running);
    EXPECT_EQ(log_of(status.key, Writer::alive), "o begun\n");
    EXPECT_TRUE(m_cluster.requests.empty()) << "its heartbeat says it";
}

TEST_F(FirstFormat, OfARunThatHasDiedSince)
{
    m_clock.advance(10min);
    const RunKey long_one = key("long");
    slurm_has(long_one, 9, JobState::node_fail);
    const RunStatus status = query_run(m_services, long_one);
    EXPECT_EQ(status.state, RunState::ended);
    EXPECT_EQ(status.ending.value().cause, Cause::node_failed);
}

TEST_F(FirstFormat, OfARunThatWaits)
{
    slurm_has(key("desk"), 11, JobState::pending);
    const RunStatus status = query_run(m_services, key("desk"));
    EXPECT_EQ(status.state, RunState::waiting);
    EXPECT_TRUE(status.run.value().request.pty);
}

TEST_F(FirstFormat, OfARunThatWasStoppedWhileItWaited)
{
    const RunStatus status = query_run(m_services, key("waits"));
    EXPECT_EQ(status.state, RunState::ended);
    EXPECT_EQ(status.ending.value().cause, Cause::stopped);
    EXPECT_EQ(status.ending->detail, "by ada@login1");
    EXPECT_EQ(status.run.value().request.gpus.count, 4);
}

} // namespace
} // namespace gpuq
