// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

/// Whether the GPUs of a run lie idle, and for how long: what a policy's `idle` is judged by. Pure:
/// the same samples, read again from the file, give the same answers.
///
/// Nothing is taken for idle that is not known to be. A GPU whose use is unknown, for whatever
/// reason, begins the time anew; so does a CPU or a disk that nobody could measure. Samples that
/// are missing are counted, and too many of them let nothing happen. So an unknown in the place of
/// any value never brings a release nearer.
namespace gpuq::telemetry {

using std::chrono::milliseconds;

/// What a queue says of idle GPUs.
struct IdleRule {
    milliseconds after{0}; ///< all unused for so long: released
    milliseconds warn{0};  ///< so long before that the run is warned; less than `after`
    milliseconds start{0}; ///< the time after the program's start that does not count
    int max_per_hour = 0;  ///< releases of one user
    bool operator==(const IdleRule&) const = default;
};

/// Part of the time that has to be covered by samples, in percent.
constexpr int k_idle_coverage = 95;
/// A run that uses more of a CPU than this, or of a disk, works: percent of one core and bytes per
/// second over ten seconds. What gpuq's own processes and a sleeping notebook need is far below.
constexpr int k_idle_cpu_percent = 5;
constexpr std::uint64_t k_idle_disk_rate = 100 << 10;

/// What one sample says. The numbers go through a pipe between processes of one executable.
struct IdleLook {
    enum class Says : std::uint8_t { unused, works, unknown };
    enum class By : std::uint8_t { nothing, gpu, gpu_memory, cpu, disk };
    milliseconds elapsed{0}; ///< of the sample
    milliseconds covers{0};  ///< of the time before it
    Says says = Says::unknown;
    By by = By::nothing; ///< what works, or is not known
    Unknown why = Unknown::not_measured;
    std::uint64_t memory_kib = 0; ///< of all GPUs
    std::uint64_t cpu_ms = 0;     ///< since the run began
    std::uint64_t disk_bytes = 0;
    bool operator==(const IdleLook&) const = default;
};

/// Makes looks of samples, which come in their order.
class IdleLooks {
public:
    IdleLook look(const Sample& sample);

private:
    struct Use {
        milliseconds elapsed{0};
        std::uint64_t cpu_ms = 0, disk_bytes = 0;
    };
    static IdleLook of_gpus(const Sample& sample);
    IdleLook::By works_elsewhere(const Use& now) const;

    std::deque<Use> m_recent; ///< of the last ten seconds, and one before
    std::optional<std::uint64_t> m_memory_kib;
    std::optional<milliseconds> m_elapsed;
};

/// Why a verdict is what it is; goes to JSON as it is, so that it can be judged again.
struct IdleEvidence {
    milliseconds at{0};           ///< all times: since the first sample
    milliseconds idle_since{0};   ///< nothing of the run has worked since
    milliseconds missing{0};      ///< of the last `after`, without a sample
    std::uint64_t samples = 0;    ///< since `idle_since`, all of them with all GPUs unused
    std::uint64_t memory_kib = 0; ///< still held on the GPUs
    std::uint64_t cpu_ms = 0;     ///< used since `idle_since`
    std::uint64_t disk_bytes = 0;
    std::optional<milliseconds> started; ///< the program
    std::optional<milliseconds> last_input, last_output;
    bool operator==(const IdleEvidence&) const = default;
};

struct IdleVerdict {
    enum class State {
        works,   ///< or it has not been idle for long
        warn,    ///< it is to be told: released in `left`
        release, ///< the time is over
        unknown, ///< nobody can say; why: `by` and `why`
        exempt,  ///< its owner has said that it is to be left alone
    };
    State state = State::works;
    IdleLook::By by = IdleLook::By::nothing;
    Unknown why = Unknown::not_measured;
    milliseconds left{0}; ///< before it is released; of one that is warned
    IdleEvidence evidence;
    bool operator==(const IdleVerdict&) const = default;
};

/// The watch over the GPUs of one link. Times are those of the samples (Sample::elapsed), which no
/// step of the node's clock moves; they may be negative.
class IdleWatch {
public:
    /// `measured`: all nodes of the run are. Where they are not, nothing is ever released.
    IdleWatch(const IdleRule& rule, bool measured, bool exempt = false);

    void began(milliseconds at);   ///< the program
    void typed(milliseconds at);   ///< somebody at its terminal
    void printed(milliseconds at); ///< the program
    void exempt() { m_exempt = true; }
    /// Not released although it was time: the warning is given anew, `after` from now on.
    void put_off();
    IdleVerdict add(const IdleLook& look);

private:
    void begin_anew(milliseconds at);
    milliseconds missing_before(milliseconds at) const;
    IdleEvidence evidence(const IdleLook& look) const;

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

/// The verdict at `evidence.at` once more, from samples as the file has them one by one (those of
/// the last two hours): it is the same. Nothing when there is no sample of that time.
std::optional<IdleVerdict> replayed(const std::vector<Sample>& samples, const IdleRule& rule,
                                    const IdleEvidence& evidence);

/// `gpu`, `gpu_memory`, ...
std::string_view word(IdleLook::By by);

} // namespace gpuq::telemetry
