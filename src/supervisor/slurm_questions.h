// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/helper.h"
#include "supervisor/supervise.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Asks Slurm about the own job, one question at a time, without waiting for it.
class SlurmQuestions {
public:
    using Clock = std::chrono::steady_clock;

    SlurmQuestions(Doors& doors, std::optional<JobId> job)
        : m_doors(doors)
        , m_job(job)
    {
    }
    SlurmQuestions(const SlurmQuestions&) = delete;
    SlurmQuestions& operator=(const SlurmQuestions&) = delete;
    ~SlurmQuestions() { drop(); }

    /// False when the question can not even be asked. One that is open goes on. `queues` as ask_job
    /// (helper.h).
    bool ask(Clock::time_point now, const std::string& queues = "");
    bool open() const { return m_helper.has_value(); }
    /// Readable when there is an answer; -1 when none is awaited.
    int fd() const { return m_helper ? m_helper->answer() : -1; }
    std::optional<Clock::time_point> gives_up_at() const;
    /// The answer, or nothing when Slurm gave none. Closes the question.
    std::optional<JobNews> answer();
    void drop();
    /// The helper's process, which is not the program's.
    std::optional<pid_t> pid() const;

private:
    Doors& m_doors;
    std::optional<JobId> m_job;
    std::optional<Helper> m_helper;
    Clock::time_point m_asked_at;
};

} // namespace gpuq::supervisor
