// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/early_stopper.h"

namespace gpuq::supervisor {

using sweeps::EarlyStop;
using sweeps::RungValue;
using sweeps::TryEvent;

void EarlyStopper::watch(Slot& slot, bool continues)
{
    if (!m_sweep.stop_early) {
        return;
    }
    const auto& rungs = m_taker.board().tries()[slot.taken().number - 1].rungs;
    const auto earlier = continues && !rungs.empty() ? std::optional(rungs.back()) : std::nullopt;
    slot.climb().emplace(*m_sweep.stop_early, m_sweep.metric, earlier);
}

std::vector<RungValue> EarlyStopper::record(Slot& slot, Time now, LinkNumber link)
{
    const auto* const curve = slot.climb() ? slot.curve(m_sweep.metric) : nullptr;
    if (curve == nullptr) {
        return {};
    }
    std::vector<RungValue> passed = slot.climb()->passed(*curve);
    for (const RungValue& value : passed) {
        TryEvent event{TryEvent::Kind::passed, slot.taken().number, slot.taken().attempt, now,
                       link};
        event.rung = value;
        (void)m_taker.record(event);
    }
    return passed;
}

std::optional<EarlyStop> EarlyStopper::evaluate(Slot& slot, Time now, LinkNumber link)
{
    const auto passed = record(slot, now, link);
    if (passed.empty() || slot.evidence() || !m_taker.refresh()) {
        return std::nullopt;
    }
    const auto& tries = m_taker.board().tries();
    const std::size_t number = slot.taken().number;
    for (const RungValue& value : passed) {
        const auto loss = tries[number - 1].is_exempt
                              ? std::nullopt
                              : sweeps::evaluate(*m_sweep.stop_early, m_sweep.metric, value,
                                                 others_at(tries, value.rung, number));
        if (loss) {
            return loss;
        }
    }
    return std::nullopt;
}

} // namespace gpuq::supervisor
