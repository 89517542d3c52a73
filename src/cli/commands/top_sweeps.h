// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/top_sweep.h"
#include "core/key.h"
#include "ports/store.h"
#include "runs/status.h"
#include "sweeps/board.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The sweeps of `gpuq top`, from the disk alone.
namespace gpuq::cli {

/// Rereads sweeps, each time only their changes. For one thread.
class TopSweeps {
public:
    /// Active sweeps and those begun within a day; with `want_all` every one. `store` must outlive
    /// the object.
    TopSweeps(Store& store, bool want_all)
        : m_store(store)
        , m_want_all(want_all)
    {
    }

    /// Newest first. `runs`: all that are listed, among them the workers. A sweep that can't be
    /// read is omitted.
    std::vector<TopSweep> read(const std::vector<RunStatus>& runs, Time now);

private:
    struct Known {
        sweeps::Board board;
        TopSweep sweep;
        std::uint64_t version = 0; ///< of the board when `sweep` was made
    };
    Known* known(const RunKey& key);
    void refresh(Known& entry, const std::vector<RunStatus>& runs, Time now);
    bool has_lost_tries(const SweepStatus& status, const std::vector<RunStatus>& runs) const;

    Store& m_store;
    bool m_want_all;
    std::map<RunKey, Known> m_known;
};

/// A try in the effects of the screen: `KEY/12`.
struct TryName {
    std::string sweep;
    std::size_t number = 0;
};
/// Nothing if the text denotes a run.
std::optional<TryName> parse_try_name(std::string_view text);

/// The metric's curve and the last step of a try, from its log; of a long log only its end.
tui::Detail detail_of_try(Store& store, const std::vector<TopSweep>& sweeps, const TryName& name);

/// Tries of one sweep side by side, likewise; `keys` as in parse_try_name().
tui::Comparison compare_tries(Store& store, const std::vector<TopSweep>& sweeps,
                              const std::vector<std::string>& keys, Time now);

} // namespace gpuq::cli
