// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/early_stopper.h"

#include <chrono>

namespace gpuq::supervisor {
namespace {

constexpr std::chrono::seconds k_between_comparisons{10};

} // namespace

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
    const bool is_due = is_comparison_due(slot, now);
    if ((passed.empty() && !is_due) || slot.evidence() || !m_taker.refresh()) {
        return std::nullopt;
    }
    const auto& tries = m_taker.board().tries();
    const std::size_t number = slot.taken().number;
    const sweeps::Try& own = tries[number - 1];
    if (own.is_exempt) {
        return std::nullopt;
    }
    const bool all = sweeps::compares_again(*m_sweep.stop_early);
    return find_loss(*m_sweep.stop_early, m_sweep.metric, tries, number, all ? own.rungs : passed);
}

/// Whether other tries may have passed its rungs.
bool EarlyStopper::is_comparison_due(Slot& slot, Time now) const
{
    const Time last = slot.compared_at();
    if (!slot.climb() || !sweeps::compares_again(*m_sweep.stop_early) ||
        (now >= last && now - last < k_between_comparisons)) {
        return false;
    }
    slot.set_compared_at(now);
    return true;
}

} // namespace gpuq::supervisor
