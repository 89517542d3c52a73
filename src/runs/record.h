// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpuq {

/// The text of runs/KEY/run.json (`"schema": 1`). Texts that are not UTF-8 (environment, arguments,
/// paths are bytes) survive: each is written as `{"hex": "66ff"}` in the place of a string.
std::string to_json(const Run& run);
/// `usage` names what is wrong. Unknown fields are ignored: a newer gpuq may have written them.
Result<Run> run_from_json(std::string_view text);

/// The word for a notice in files and on the command line: `auto`, `USR1`, ...
std::string_view word(Notice notice);
std::optional<Notice> notice_from_word(std::string_view text);

/// runs/KEY/link-N/job.json: which Slurm job this link is.
struct LinkJob {
    std::string cluster;
    JobId job;
    Time submitted_at;
    bool batch = false;   ///< else an allocation that the supervisor itself has to end
    bool resumed = false; ///< a person let the run go on after its end
    bool operator==(const LinkJob&) const = default;
};
std::string to_json(const LinkJob& link);
Result<LinkJob> link_job_from_json(std::string_view text);

/// runs/KEY/ended.json.
std::string to_json(const Ending& ending);
Result<Ending> ending_from_json(std::string_view text);

/// runs/KEY/walltime.json: what is in place of the request's.
struct WalltimeChange {
    std::chrono::minutes walltime{0};
    std::string by; ///< user@host
    Time at;
    std::optional<Chain> chain; ///< nothing: the request's
    bool operator==(const WalltimeChange&) const = default;
};
void apply(const WalltimeChange& change, Request& request);
std::string to_json(const WalltimeChange& change);
Result<WalltimeChange> walltime_change_from_json(std::string_view text);
/// runs/KEY/shown.json: offsets of the first bytes that nobody has been shown, as far as a client
/// lived to tell.
struct Shown {
    std::uint64_t out = 0, err = 0;
    LinkNumber link; ///< whose offsets these are
    bool operator==(const Shown&) const = default;
};
std::string to_json(const Shown& shown);
Result<Shown> shown_from_json(std::string_view text);

/// runs/KEY/inbox/stop.json, and save_and_stop.json, with which the program may save first.
struct StopRequest {
    std::string by; ///< user@host
    Time at;
    bool operator==(const StopRequest&) const = default;
};
std::string to_json(const StopRequest& request);
Result<StopRequest> stop_request_from_json(std::string_view text);

} // namespace gpuq
