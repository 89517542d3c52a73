// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/worker/slot.h"
#include "sweeps/records.h"
#include "sweeps/taker.h"

#include <optional>
#include <vector>

namespace gpuq::supervisor {

/// Compares the running tries of a worker with all tries of the sweep. The workers share the values
/// at the rungs (sweeps/early_stop.h) by their journals: a few short lines for each try.
class EarlyStopper {
public:
    /// Both must outlive the object. Does nothing unless the sweep has a rule.
    EarlyStopper(sweeps::TryTaker& taker, const sweeps::Sweep& sweep)
        : m_taker(taker)
        , m_sweep(sweep)
    {
    }

    /// A try begins; `continues`: from a checkpoint.
    void watch(Slot& slot, bool continues);

    /// Records the rungs that its curve has passed. While the journal cannot be written, other
    /// tries are compared without these values.
    std::vector<sweeps::RungValue> record(Slot& slot, Time now, LinkNumber link);

    /// The same, and whether the try loses at one of them, or, every ten seconds if the rule
    /// compares again, at an earlier one. Never a try without a curve, one that is ending, or one
    /// that the user has repeated after an early end.
    std::optional<sweeps::EarlyStop> evaluate(Slot& slot, Time now, LinkNumber link);

private:
    bool is_comparison_due(Slot& slot, Time now) const;

    sweeps::TryTaker& m_taker;
    const sweeps::Sweep& m_sweep;
};

} // namespace gpuq::supervisor
