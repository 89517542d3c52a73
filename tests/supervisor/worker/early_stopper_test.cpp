// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/early_stopper.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "sweeps/changes.h"
#include "sweeps/numbered_sweep.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using sweeps::EarlyStop;
using sweeps::k_first_taken;
using sweeps::k_numbered_sweep;
using sweeps::TryEvent;

constexpr LinkNumber k_first{1};
const sweeps::Claimant k_self{sweeps::numbered_key(1), k_first};

/// Worker 1 runs try 1, whose loss is 3 at step 10, the first rung; other workers run the others.
class EarlyStopperTest : public testing::Test {
protected:
    void begin(const char* rule)
    {
        m_sweep.metric = {"loss", sweeps::Metric::Goal::min};
        m_sweep.stop_early = sweeps::parse_stop_rule(rule).value();
        ASSERT_TRUE(write_sweep(m_store, m_sweep, sweeps::numbered_tries(5)));
        auto taken = m_taker.next(k_first_taken);
        ASSERT_TRUE(taken && *taken);
        m_slot.emplace(**std::move(taken), -1, nullptr);
        m_stopper.watch(*m_slot, /*continues=*/false);
        const std::string log = layout::try_log(k_numbered_sweep, 1);
        ASSERT_TRUE(m_store.write(log, "step 10 loss 3\nstep 11 loss 2.9\n"));
        m_slot->read_log(m_store, log);
    }

    /// Four better tries pass the rung of try 1.
    void others_pass_its_rung()
    {
        for (std::size_t number = 2; number <= 5; ++number) {
            const RunKey worker = sweeps::numbered_key(static_cast<unsigned int>(number));
            TryEvent event{TryEvent::Kind::began, number, 1, k_first_taken, k_first};
            const std::string journal = layout::sweep_worker(k_numbered_sweep, worker);
            EXPECT_TRUE(m_store.append_line(journal, to_line(event)));
            event.kind = TryEvent::Kind::passed;
            event.rung = {10, 1, 1, 1};
            EXPECT_TRUE(m_store.append_line(journal, to_line(event)));
        }
    }

    std::optional<EarlyStop> evaluated_at(std::chrono::seconds at)
    {
        return m_stopper.evaluate(*m_slot, k_first_taken + at, k_first);
    }

    fakes::MemoryStore m_store;
    sweeps::Sweep m_sweep = sweeps::numbered_sweep("cal");
    sweeps::TryTaker m_taker{m_store, k_numbered_sweep, k_self,
                             [](const sweeps::Claimant&) { return false; }};
    EarlyStopper m_stopper{m_taker, m_sweep};
    std::optional<Slot> m_slot;
};

TEST_F(EarlyStopperTest, ComparesATryAgainEveryTenSecondsByMedian)
{
    begin("median");
    EXPECT_EQ(evaluated_at(1s), std::nullopt) << "the first one";
    others_pass_its_rung();
    EXPECT_EQ(evaluated_at(10s), std::nullopt);
    EXPECT_EQ(evaluated_at(11s), (EarlyStop{1, 10, 3, 1, 4}));
}

TEST_F(EarlyStopperTest, ComparesATryOnceByHalving)
{
    begin("asha");
    EXPECT_EQ(evaluated_at(1s), std::nullopt) << "the first one";
    others_pass_its_rung();
    EXPECT_EQ(evaluated_at(60s), std::nullopt);
}

} // namespace
} // namespace gpuq::supervisor
