// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/printer.h"
#include "cli/base/verb.h"
#include "core/run.h"
#include "runs/query_status.h"
#include "runs/records/link_log.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace gpuq::cli {

/// A run as seen without a connection: the log on disk, and whether the run has ended, from its
/// records and Slurm.
class DiskView {
public:
    /// `end` is for a client that shows a screen from now on, which can't be rebuilt from a log.
    enum class What { log_and_end, end };
    DiskView(Services& services, const Run& run, LinkNumber link, Printer& printer, What what);

    /// Passes new output in the log to the printer, as far as it accepts it. Returns the end of
    /// this link (not necessarily of the run) once it is known and the whole log has been read.
    std::optional<wire::Ended> poll(Store& store);
    /// True if the records show that the run or this link has ended. Never queries Slurm.
    bool has_ended(Store& store) const
    {
        const RunStatus now = status(store, SlurmQuery::never);
        return now.state == RunState::ended || now.link > m_link;
    }
    /// True if the end is known and only the rest of the log is still to be read.
    bool knows_ending() const { return m_ending.has_value(); }

private:
    using Clock = std::chrono::steady_clock;
    RunStatus status(Store& store, SlurmQuery query) const;
    void find_end(Store& store);
    bool print(Store& store);

    Services& m_services;
    const Run& m_run;
    LinkNumber m_link;
    Printer& m_printer;
    What m_what;
    Clock::time_point m_ask_at = {};
    std::optional<wire::Ended> m_ending;
    std::optional<LinkLog> m_log;
    std::array<std::uint64_t, 2> m_position{0, 0};
};

} // namespace gpuq::cli
