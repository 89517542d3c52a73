// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/ids.h"
#include "core/run.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

/// An event of a run that its user may want to know while no terminal of gpuq is in view.
struct RunNotice {
    enum class Event : std::uint8_t { start, end, failure, warning } event = Event::end;
    std::string key;  ///< of the run; of a plain job its id
    std::string run;  ///< as users type it
    std::string text; ///< `run 4711 (train) has started`; need not be sanitised
    bool operator==(const RunNotice&) const = default;
};

/// The name of an event, as the command gets it.
std::string_view word(RunNotice::Event event);

RunNotice start_notice(const Run& run, JobId job);
RunNotice end_notice(const Run& run, JobId job, const Ending& ending);
/// `text`: a message of the run's supervisor.
RunNotice warning_notice(const Run& run, JobId job, std::string_view text);

/// Executes the command of the setting `notify` for each notice, in the background (man gpuq).
/// Every part of gpuq that notices an event of a run passes it to such an object.
class Notices {
public:
    /// Reads the setting. Does nothing in a process that was itself started by such a command.
    /// `services` must outlive the object.
    explicit Notices(Services& services);

    /// Never blocks: a command that cannot be executed is ignored. A notice that equals the last
    /// one about its run is not repeated.
    void give(const RunNotice& notice);

private:
    Services& m_services;
    std::vector<std::string> m_command;      ///< empty: none
    std::map<std::string, RunNotice> m_last; ///< by key
};

} // namespace gpuq::cli
