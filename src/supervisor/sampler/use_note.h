// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/context.h"
#include "supervisor/base/helper.h"

#include <chrono>
#include <optional>
#include <sys/types.h>

namespace gpuq::supervisor {

/// At the end of a link, notes the use of its GPUs in the job's comment, which Slurm's accounting
/// keeps when the job ends. A helper makes one request, never repeated, to slurmctld, or to
/// slurmdbd if Slurm has ended the job. No process waits for it longer than Patience::noting.
/// Without usable samples no request is made.
class UseNote {
public:
    using Clock = std::chrono::steady_clock;

    explicit UseNote(const Options& options)
        : m_options(options)
    {
    }
    UseNote(const UseNote&) = delete;
    UseNote& operator=(const UseNote&) = delete;
    ~UseNote() { finish(); }

    /// `allocated`: the time for which the link held its GPUs, summed over all of them.
    void begin(std::chrono::milliseconds allocated, JobEnd end, Clock::time_point now);
    bool open() const { return m_helper.has_value(); }
    /// Readable when it has finished; -1 if it is not running.
    int fd() const { return m_helper ? m_helper->answer() : -1; }
    Clock::time_point gives_up_at() const { return m_gives_up_at; }
    void finish();
    /// The helper process, which does not belong to the program.
    std::optional<pid_t> pid() const;

private:
    const Options& m_options;
    std::optional<Helper> m_helper;
    Clock::time_point m_gives_up_at;
};

/// The helper's work. Returns what it has noted; empty: nothing.
std::string note_use(Services& services, const Options& options,
                     std::chrono::milliseconds allocated, JobEnd end);

} // namespace gpuq::supervisor
