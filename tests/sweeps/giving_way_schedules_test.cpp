// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/layout.h"
#include "fakes/memory_store.h"
#include "sweeps/changes.h"
#include "sweeps/growth.h"
#include "sweeps/numbered_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>

// Schedules by a seed: workers that give way to other jobs, while others of the sweep are killed at
// any moment. Heartbeats come every five seconds; of some deaths nothing is recorded.

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;

class GivingWaySchedule {
public:
    explicit GivingWaySchedule(unsigned int seed)
        : m_random(seed)
        , m_sweep(numbered_sweep("cal"))
    {
        EXPECT_TRUE(write_sweep(m_disk, m_sweep, numbered_tries(60)));
        for (unsigned int number = 1; number <= 2 + m_random() % 3; ++number) {
            start(numbered_key(number));
        }
    }

    /// Until no worker lives.
    void run()
    {
        constexpr int k_most_steps = 20'000;
        for (int step = 0; step < k_most_steps && !m_living.empty(); ++step) {
            m_now += 1s;
            for (const auto& worker : m_living) {
                advance(*worker);
            }
            std::erase_if(m_living, [](const auto& worker) { return worker->has_left; });
            record_deaths();
        }
        EXPECT_TRUE(m_living.empty());
    }
    int given_way() const { return m_given_way; }
    int taken_back() const { return m_taken_back; }

private:
    struct Worker {
        RunKey key;
        TryTaker taker;
        Growth growth;
        Time next_beat;
        std::optional<TryTaker::Taken> running = {};
        Time ends_at = {}; ///< the running try, or the one before
        bool gives_way = false, has_left = false;
    };

    bool chosen(unsigned int in) { return m_random() % in == 0; }

    void start(const RunKey& key)
    {
        EXPECT_TRUE(m_disk.write(layout::sweep_run(k_numbered_sweep, key), ""));
        EXPECT_TRUE(m_disk.write(layout::run_json(key), "{}"));
        EXPECT_TRUE(m_disk.write(layout::job_json(key, k_first), "{}"));
        EXPECT_TRUE(m_disk.write(layout::claim(key, k_first), "1"));
        m_living.push_back(std::make_unique<Worker>(
            Worker{key,
                   TryTaker(m_disk, k_numbered_sweep, {key, k_first},
                            [this](const Claimant& who) { return is_link_over(m_disk, who); }),
                   Growth(m_disk, k_numbered_sweep), m_now}));
    }

    void advance(Worker& worker)
    {
        if (chosen(400)) {
            die(worker);
            return;
        }
        if (m_now >= worker.next_beat) {
            EXPECT_TRUE(m_disk.write(layout::heartbeat(worker.key, k_first),
                                     to_line(Heartbeat{m_now, JobId{1}})));
            worker.next_beat = m_now + k_heartbeat_period;
        }
        if (worker.running && m_now >= worker.ends_at) {
            EXPECT_TRUE(worker.taker.record(end_of_taken(*worker.running)));
            worker.running.reset();
        }
        if (worker.running) {
            const bool others_wait = chosen(30);
            worker.gives_way =
                worker.gives_way ||
                (others_wait && worker.growth.is_newest_of_several(worker.key, m_now));
        } else if (worker.gives_way) {
            give_way(worker);
        } else {
            take(worker);
        }
    }

    void take(Worker& worker)
    {
        const auto taken = worker.taker.next(m_now);
        ASSERT_TRUE(taken);
        worker.running = *taken;
        worker.ends_at = m_now + std::chrono::seconds(1 + m_random() % 60);
        worker.has_left = !*taken; // no try is left
    }

    void give_way(Worker& worker)
    {
        EXPECT_TRUE(worker.taker.refresh());
        if (tally_of(worker.taker.board().tries()).waiting == 0) {
            worker.has_left = true;
            return;
        }
        switch (worker.growth.older_than(worker.key, m_now)) {
        case Growth::Older::unknown:
            EXPECT_LT(m_now - worker.ends_at, 1min) << "its GPUs are idle";
            return;
        case Growth::Older::gone:
            worker.gives_way = false;
            ++m_taken_back;
            return;
        case Growth::Older::continues:
            worker.has_left = true;
            ++m_given_way;
            const auto lives = [&](const auto& other) {
                return other->key < worker.key && !other->has_left;
            };
            const auto lived = [&](const auto& death) {
                return death.first < worker.key && death.second > worker.ends_at;
            };
            EXPECT_TRUE(std::any_of(m_living.begin(), m_living.end(), lives) ||
                        std::any_of(m_deaths.begin(), m_deaths.end(), lived))
                << "no worker takes the tries that are left";
        }
    }

    void die(Worker& worker)
    {
        worker.has_left = true;
        m_deaths.emplace(worker.key, m_now);
        m_unrecorded.push_back(worker.key);
    }

    /// By its guardian, or by a client that Slurm has given an answer.
    void record_deaths()
    {
        std::erase_if(m_unrecorded, [this](const RunKey& key) {
            return chosen(20) && m_disk.write(layout::ended_json(key), "{}");
        });
    }

    std::mt19937 m_random;
    fakes::MemoryStore m_disk;
    Sweep m_sweep;
    Time m_now = k_first_taken;
    std::map<RunKey, Time> m_deaths;
    std::vector<std::unique_ptr<Worker>> m_living;
    std::vector<RunKey> m_unrecorded; ///< deaths
    int m_given_way = 0, m_taken_back = 0;
};

TEST(GivingWaySchedules, LeaveAWorkerThatTakesTheTriesThatAreLeft)
{
    const char* const soak = std::getenv("GPUQ_SOAK");
    const unsigned int seeds = soak != nullptr ? 10'000 : 300;
    int given_way = 0, taken_back = 0;
    for (unsigned int seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        GivingWaySchedule schedule(seed);
        schedule.run();
        given_way += schedule.given_way();
        taken_back += schedule.taken_back();
    }
    EXPECT_GT(given_way, 100);
    EXPECT_GT(taken_back, 10);
}

} // namespace
} // namespace gpuq::sweeps
