// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/printer.h"
#include "cli/verb.h"
#include "core/run.h"
#include "runs/link_log.h"
#include "runs/look.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace gpuq::cli {

/// What a client without a connection can know of its run: the log on disk, and from records and
/// Slurm whether it has ended.
class DiskView {
public:
    /// `what`: a screen that was joined late can't be made of a log.
    enum class What { log_and_end, end };
    DiskView(Doors& doors, const Run& run, LinkNumber link, Printer& printer, What what);

    /// Of one link: its log, and its end, which may not be that of the run.
    /// Hands what the log has beyond what was shown to the printer, as far as that takes it. Gives
    /// the end when it is known and all of the log has been read.
    std::optional<wire::Ended> look(Store& store);
    /// True when the records say that the run has ended; asks nobody.
    bool has_ended(Store& store) const
    {
        const RunStatus now = status(store, Ask::never);
        return now.state == RunState::ended || now.link > m_link;
    }
    /// True when the run has ended and only the reading is left.
    bool knows_ending() const { return m_ending.has_value(); }

private:
    using Clock = std::chrono::steady_clock;
    RunStatus status(Store& store, Ask ask) const;
    void look_for_end(Store& store);
    bool print(Store& store);

    Doors& m_doors;
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
