// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

/// Decides whether the GPUs of a run are idle, and for how long, as the basis of a policy's `idle`
/// rule. Pure: the same samples, read again from the file, give the same results.
///
/// Only GPUs that are known to be idle count as idle. A GPU whose use is unknown for any reason
/// restarts the idle time; so does a CPU or a disk that could not be measured. Missing samples are
/// counted, and too many of them prevent a release. An unknown value therefore never brings a
/// release nearer.
namespace gpuq::telemetry {

using std::chrono::milliseconds;

/// A queue's rule for idle GPUs.
struct IdleRule {
    milliseconds after{0}; ///< released when all GPUs have been unused for this long
    milliseconds warn{0};  ///< the warning precedes the release by this time; less than `after`
    milliseconds start{0}; ///< the time after the program's start that does not count
    int max_per_hour = 0;  ///< maximum number of releases per user
    bool operator==(const IdleRule&) const = default;
};

/// The share of the time that samples must cover, in percent.
constexpr int k_idle_coverage = 95;
/// A run that uses more CPU or disk than this is at work: percent of one core, and bytes per
/// second, over ten seconds. gpuq's own processes and a sleeping notebook use far less.
constexpr int k_idle_cpu_percent = 5;
constexpr std::uint64_t k_idle_disk_rate = 100 << 10;

/// The result of one sample. The enumerators' numbers pass through a pipe between processes of the
/// same executable.
struct Activity {
    enum class Says : std::uint8_t { unused, works, unknown };
    enum class By : std::uint8_t { nothing, gpu, gpu_memory, cpu, disk };
    milliseconds elapsed{0}; ///< of the sample
    milliseconds covers{0};  ///< how much of the time before the sample
    Says says = Says::unknown;
    By by = By::nothing; ///< the part that works or is unknown
    Unknown why = Unknown::not_measured;
    std::uint64_t memory_kib = 0; ///< of all GPUs
    std::uint64_t cpu_ms = 0;     ///< since the run began
    std::uint64_t disk_bytes = 0;
    bool operator==(const Activity&) const = default;
};

/// Converts samples, given in their order, to Activity values.
class ActivityMeter {
public:
    Activity activity(const Sample& sample);

private:
    struct Use {
        milliseconds elapsed{0};
        std::uint64_t cpu_ms = 0, disk_bytes = 0;
    };
    static Activity of_gpus(const Sample& sample);
    Activity::By works_elsewhere(const Use& now) const;

    std::deque<Use> m_recent; ///< of the last ten seconds, and one before
    std::optional<std::uint64_t> m_memory_kib;
    std::optional<milliseconds> m_elapsed;
};

/// The evidence for a verdict; written to JSON unchanged, so that the verdict can be verified.
struct IdleEvidence {
    milliseconds at{0};           ///< all times: since the first sample
    milliseconds idle_since{0};   ///< since when no part of the run has worked
    milliseconds missing{0};      ///< time without samples, within the last `after`
    std::uint64_t samples = 0;    ///< since `idle_since`; all GPUs are unused in each of them
    std::uint64_t memory_kib = 0; ///< still held on the GPUs
    std::uint64_t cpu_ms = 0;     ///< used since `idle_since`
    std::uint64_t disk_bytes = 0;
    std::optional<milliseconds> started; ///< the program's start
    std::optional<milliseconds> last_input, last_output;
    bool operator==(const IdleEvidence&) const = default;
};

struct IdleVerdict {
    enum class State {
        works,   ///< or has not been idle for long
        warn,    ///< must be warned: released in `left`
        release, ///< due for release
        unknown, ///< not known; reason: `by` and `why`
        exempt,  ///< its owner has requested an exemption
    };
    State state = State::works;
    Activity::By by = Activity::By::nothing;
    Unknown why = Unknown::not_measured;
    milliseconds left{0}; ///< remaining time of a warned run
    IdleEvidence evidence;
    bool operator==(const IdleVerdict&) const = default;
};

/// Watches the GPUs of one link. Times are those of the samples (Sample::elapsed), which do not
/// depend on changes of the node's clock; they may be negative.
class IdleWatch {
public:
    /// `measured`: all nodes of the run are measured. Otherwise its GPUs are never released.
    IdleWatch(const IdleRule& rule, bool measured, bool exempt = false);

    void began(milliseconds at);   ///< the program's start
    void typed(milliseconds at);   ///< input at its terminal
    void printed(milliseconds at); ///< output of the program
    void exempt() { m_exempt = true; }
    /// Called if the GPUs were due but not released: the warning is repeated, and `after` starts
    /// again.
    void put_off();
    IdleVerdict add(const Activity& activity);

private:
    void begin_anew(milliseconds at);
    milliseconds missing_before(milliseconds at) const;
    IdleEvidence evidence(const Activity& activity) const;

    struct Gap {
        milliseconds end{0}, length{0};
    };
    IdleRule m_rule;
    bool m_measured;
    bool m_exempt = false;
    std::optional<milliseconds> m_started, m_since, m_last, m_last_input, m_last_output, m_warned;
    std::deque<Gap> m_gaps;
    std::uint64_t m_samples = 0, m_cpu_ms = 0, m_disk_bytes = 0;
    bool m_count_from_next = true;
};

/// Repeats the verdict at `evidence.at`, from individual samples as in the file (those of the last
/// two hours); the result must be the same. Nothing if there is no sample of that time.
std::optional<IdleVerdict> replayed(const std::vector<Sample>& samples, const IdleRule& rule,
                                    const IdleEvidence& evidence);

} // namespace gpuq::telemetry
