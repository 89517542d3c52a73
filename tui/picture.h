// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "report/table.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::tui {

/// Something over time, for a small drawing. Values at equal distances, the newest last; nothing
/// where a value is not known, which leaves a gap.
struct Curve {
    std::string title;
    std::string unit;
    std::vector<std::optional<double>> values;
};

/// One run, as far as keys act on it. Texts need not be sanitised.
struct RunRow {
    std::string key; ///< by which it stays selected while rows come and go
    std::string id;  ///< what people type
    std::string name;
    std::string gpus;               ///< `1 k80`
    std::string since;              ///< `running for 47 min`; empty: it does not run
    bool active = false;            ///< waits or runs: can be stopped, extended
    bool running = false;           ///< can be attached to
    bool saves = false;             ///< can be told to save before it stops
    bool plain = false;             ///< a Slurm job that gpuq did not start: no supervisor
    std::optional<double> part;     ///< of its time that is used, 0 to 1
    std::vector<std::string> facts; ///< what there is to say of it, a line each
};

/// What takes longer to find out, of one run.
struct Detail {
    std::string key;
    std::vector<std::string> facts;
    std::vector<Curve> curves;
};

/// All that is known at one time, from disk and from Slurm.
struct Picture {
    std::string cluster;
    std::string answer;           ///< is there a GPU for me, now?
    std::string trouble;          ///< why there is nothing newer; empty: all is well
    std::optional<Time> slurm_at; ///< when Slurm last said something; unset: not yet
    report::Table gpus;
    report::Table runs;
    std::vector<RunRow> rows; ///< one for each row of `runs`, in its order
};

} // namespace gpuq::tui
