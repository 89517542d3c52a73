// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "report/table.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::tui {

/// A quantity over time, for a small chart. Values at equal intervals, the newest last; an unknown
/// value leaves a gap.
struct Curve {
    std::string title;
    std::string unit;
    std::vector<std::optional<double>> values;
};

/// A run, with the data that keys need. Texts need not be sanitised.
struct RunRow {
    std::string key; ///< keeps it selected while rows change
    std::string id;  ///< as users type it
    std::string name;
    std::string gpus;               ///< `1 k80`
    std::string since;              ///< `running for 47 min`; empty: not running
    bool active = false;            ///< waiting or running: can be stopped, extended
    bool running = false;           ///< can be attached to
    bool saves = false;             ///< can be asked to save before it stops
    bool plain = false;             ///< a Slurm job that gpuq did not start: no supervisor
    std::optional<double> part;     ///< the used part of its time, 0 to 1
    std::vector<std::string> facts; ///< information about it, one line each
};

/// Details of one run, which take longer to collect.
struct Detail {
    std::string key;
    std::vector<std::string> facts;
    std::vector<Curve> curves;
};

/// Everything known at one time, from disk and from Slurm.
struct Picture {
    std::string cluster;
    std::string answer;           ///< whether a GPU is free for the user now
    std::string trouble;          ///< why there is nothing newer; empty: no problem
    std::optional<Time> slurm_at; ///< time of Slurm's last response; unset: none yet
    report::Table gpus;
    report::Table runs;
    std::vector<RunRow> rows; ///< one per row of `runs`, in its order
};

} // namespace gpuq::tui
