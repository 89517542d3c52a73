// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "ports/store.h"
#include "tune/tuning.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gpuq::cli {

/// The results of a search in the state directory (layout::tuning), with which the next search for
/// the same problem continues. Only the newest few journals are kept.
class TuningJournal {
public:
    /// `store` must outlive the object. Reads the known results; a file that is damaged or too
    /// large counts as far as it can be read.
    TuningJournal(Store& store, std::uint64_t problem, Time now);

    const tune::Known& known() const { return m_known; }
    /// Appends a result. After a failure, which it returns once, nothing more is written.
    Result<void> add(std::uint64_t hash, const std::vector<tune::Seconds>& waits);

private:
    void remove_oldest();

    Store& m_store;
    std::string m_path;
    Time m_now;
    tune::Known m_known;
    bool m_is_new = true;
    bool m_has_failed = false;
};

} // namespace gpuq::cli
