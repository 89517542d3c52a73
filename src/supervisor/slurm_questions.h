// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/helper.h"
#include "supervisor/supervise.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Queries Slurm about the supervisor's own job, one query at a time, without waiting for the
/// answer.
class SlurmQuestions {
public:
    using Clock = std::chrono::steady_clock;

    /// `options` must outlive the object.
    explicit SlurmQuestions(const Options& options)
        : m_options(options)
    {
    }
    SlurmQuestions(const SlurmQuestions&) = delete;
    SlurmQuestions& operator=(const SlurmQuestions&) = delete;
    ~SlurmQuestions() { drop(); }

    /// Starts a query, unless one is open. False if it cannot be started. `queues` as in query_job
    /// (helper.h).
    bool ask(Clock::time_point now, const std::string& queues = "");
    bool open() const { return m_helper.has_value(); }
    /// Readable when there is an answer; -1 if no query is open.
    int fd() const { return m_helper ? m_helper->answer() : -1; }
    std::optional<Clock::time_point> gives_up_at() const;
    /// Closes the query. Returns the answer; nullopt if Slurm gave none.
    std::optional<JobNews> answer();
    void drop();
    /// The helper process, which does not belong to the program.
    std::optional<pid_t> pid() const;

private:
    const Options& m_options;
    std::optional<Helper> m_helper;
    Clock::time_point m_asked_at;
};

} // namespace gpuq::supervisor
