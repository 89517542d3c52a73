// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "report/table.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The content of `gpuq top` as values. Texts need not be sanitised: the view does that.
namespace gpuq::tui {

// GPUs.

/// A job that holds GPUs.
struct Holder {
    std::string key; ///< of the user's run; empty for another user's job
    std::string id;  ///< the job, as users type it
    std::string who; ///< the run's name, or the user's name
    bool mine = false;
    std::optional<Time> since, until; ///< until: at the latest
};

/// One GPU. Slurm counts GPUs of a node without naming them: which of a node's GPUs a job holds is
/// known only for the user's runs.
struct Gpu {
    enum class State : std::uint8_t { mine, others, free, reserved, down, unknown };
    State state = State::unknown;
    int holder = -1;                    ///< index into Picture::holders; -1: none, or unknown
    std::optional<double> busy, memory; ///< used share, 0 to 1; only for the user's runs
};

struct GpuNode {
    std::string name;
    std::vector<Gpu> gpus;
    std::string reserved{}; ///< `reserved until 16:00 by ada (ml)`; empty: it is not
};

/// The GPUs of one model in the same queues.
struct GpuModel {
    std::string name;
    std::string queues;
    int total = 0;
    std::optional<int> free, mine, others;
    int down = 0, reserved = 0;
    std::optional<Time> next; ///< when one is released at the latest
    std::vector<GpuNode> nodes;
    std::string shares{};   ///< free ones: `2 of 4 shards`; empty: its GPUs are not shared
    std::string forecast{}; ///< for one of them: `50 % by 14:20, 90 % by 17:05`; empty: unknown
};

// Runs.

enum class RunMark : std::uint8_t { waiting, running, attention, done, failed, ended };

/// A value of a curve. `value` unset: a gap.
struct Dot {
    double step = 0; ///< a training's step, or seconds
    std::optional<Time> at;
    std::optional<double> value;
};

/// A try of a sweep.
struct TryRow {
    std::size_t number = 0;
    std::size_t rank = 0;            ///< by the metric, the best is 1; 0: no value yet
    std::vector<std::string> values; ///< in the order of Sweep::parameters
    std::string state;               ///< `running`
    RunMark mark = RunMark::waiting;
    bool active = false; ///< waiting or running: can be stopped
    std::optional<double> best, last;
    std::chrono::microseconds used{}; ///< by all GPUs together, before `since`
    std::optional<Time> since;        ///< running since
    double gpus = 1;                  ///< in use since then; less than 1: shared by tries
};

/// The tries of a sweep.
struct Sweep {
    std::string metric;                  ///< `loss`
    std::vector<std::string> parameters; ///< those whose values differ
    std::vector<TryRow> tries;           ///< by number, from 1 on
    std::vector<Dot> course;             ///< the best value so far, each time that a try ended
    std::size_t best = 0;                ///< number of the best try; 0: none has a value
    std::size_t done = 0, failed = 0, stopped = 0, running = 0;
};

/// A run or a sweep, with the data that keys need.
struct RunRow {
    std::string key; ///< keeps it selected while rows change
    std::string id;  ///< as users type it; that of an array changes while its tasks start
    std::string name;
    std::string state; ///< `running, link 2 of about 4`
    RunMark mark = RunMark::waiting;
    std::string queue;
    std::string gpus;               ///< `1 k80`
    std::string held;               ///< `1 GPU`
    std::string time;               ///< `47 min / 2 h`
    std::string since;              ///< `running for 47 min`; empty: not running
    bool active = false;            ///< waiting or running: can be stopped, extended
    bool running = false;           ///< can be attached to
    bool saves = false;             ///< can be asked to save before it stops
    bool plain = false;             ///< a Slurm job that gpuq did not start: no supervisor
    std::optional<double> part;     ///< the used part of its time, 0 to 1
    std::optional<Time> ends;       ///< when it ended, or must end
    std::optional<Time> starts;     ///< when a waiting one is expected to start
    std::string again;              ///< `-- PROGRAM...`, to start it again; empty: can't be
    std::vector<std::string> facts; ///< information about it, one line each
    std::string sweep_key;          ///< of the sweep in the list that it works on; empty: none
    /// Of a sweep. Never changes, and is shared because it may have 100,000 tries.
    std::shared_ptr<const Sweep> sweep;
};

// Details of one run, which take longer to collect.

/// A quantity over time or steps.
struct Curve {
    std::string title;
    std::string unit;
    std::vector<Dot> dots;
    bool of_training = false; ///< its steps are those of the program
};

/// A GPU of the run, as last measured.
struct GpuUse {
    std::string name;                   ///< `n0 GPU 0`
    std::string text;                   ///< `87 % busy, 10.2 of 11.4 GiB, 143 W, 61 C`
    std::optional<double> busy, memory; ///< 0 to 1
};

/// A period or a moment of a run's life.
struct Event {
    enum class Kind : std::uint8_t {
        waiting,
        running,
        checkpoint,
        notice,
        idle,
        credentials,
        ended
    };
    Kind kind = Kind::notice;
    Time from;
    std::optional<Time> until; ///< of a period; unset: a moment
    std::string text;
};

/// Of a run, or of a try of a sweep.
struct Detail {
    std::string key; ///< the run's; of a try: the sweep's, `/` and its number
    std::vector<std::string> facts;
    std::vector<Curve> curves;        ///< the most important first
    std::optional<double> progress;   ///< of the training, 0 to 1
    std::optional<Time> finish;       ///< of the training, at its current pace
    std::optional<double> loss;       ///< last value
    std::optional<std::int64_t> step; ///< last one that it reported
    std::vector<GpuUse> gpus;
    std::vector<Event> events; ///< by time
    /// The values that it keeps if it is started again, by options of gpuq run (`--gpus`); of the
    /// selected run.
    std::map<std::string, std::string> options;
    bool ended = false; ///< nothing of this changes any more, unless the run is resumed
};

/// Several runs side by side.
struct Comparison {
    std::vector<std::string> keys;     ///< the runs or tries, in their order
    std::vector<std::string> names;    ///< `4711 (train)`
    std::vector<report::Table> tables; ///< their states, settings that differ, values
    struct Metric {
        std::string title;
        std::vector<Curve> curves; ///< one per run; empty: the run does not have it
    };
    std::vector<Metric> metrics; ///< the most important first
    std::string trouble;         ///< why it can't be shown
    std::optional<Time> at;      ///< when it was read
};

/// Everything known at one time, from disk and from Slurm.
struct Picture {
    std::string cluster;
    std::string answer;                     ///< whether a GPU is free for the user now
    std::vector<std::string> short_answers; ///< the same for less room, the longest first
    std::string trouble;                    ///< why there is nothing newer; empty: no problem
    std::optional<Time> slurm_at;           ///< time of Slurm's last response; unset: none yet
    std::vector<GpuModel> gpus;
    std::vector<Holder> holders;
    std::vector<RunRow> runs;
    bool listed = true; ///< else `runs` is empty because they could not be read
};

} // namespace gpuq::tui
