// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/helper.h"
#include "supervisor/supervise.h"

#include <chrono>
#include <optional>
#include <sys/types.h>

namespace gpuq::supervisor {

/// At the end of a link: what its GPUs did is noted in the job's comment, which Slurm's accounting
/// keeps when the job ends. One request to slurmctld, or to slurmdbd when Slurm has ended the
/// job, made by a helper and never twice. Nobody
/// waits for it longer than Patience::noting; without samples that say anything it is not made.
class UseNote {
public:
    using Clock = std::chrono::steady_clock;

    UseNote(Doors& doors, const Options& options)
        : m_doors(doors)
        , m_options(options)
    {
    }
    UseNote(const UseNote&) = delete;
    UseNote& operator=(const UseNote&) = delete;
    ~UseNote() { finish(); }

    /// The GPUs were the link's for `allocated`, added up over all of them.
    void begin(std::chrono::milliseconds allocated, JobEnd end, Clock::time_point now);
    bool open() const { return m_helper.has_value(); }
    /// Readable when it is over; -1 when nothing is under way.
    int fd() const { return m_helper ? m_helper->answer() : -1; }
    Clock::time_point gives_up_at() const { return m_gives_up_at; }
    void finish();
    /// The helper's process, which is not the program's.
    std::optional<pid_t> pid() const;

private:
    Doors& m_doors;
    const Options& m_options;
    std::optional<Helper> m_helper;
    Clock::time_point m_gives_up_at;
};

} // namespace gpuq::supervisor
