// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpuq {

/// The content of runs/KEY/run.json (`"schema": 1`). Environment, arguments and paths are bytes: a
/// value that is not UTF-8 is written as `{"hex": "66ff"}` instead of a string, so that no byte is
/// lost.
std::string to_json(const Run& run);
/// Fails with `usage`, which describes the error. Unknown fields are ignored: a newer gpuq may have
/// written them.
Result<Run> run_from_json(std::string_view text);

/// The name of a notice in files and on the command line: `auto`, `USR1`, ...
std::string_view word(Notice notice);
std::optional<Notice> notice_from_word(std::string_view text);

/// runs/KEY/link-N/job.json: the Slurm job of a link.
struct LinkJob {
    std::string cluster;
    JobId job;
    Time submitted_at;
    bool batch = false;   ///< false: an allocation, which the supervisor must end itself
    bool resumed = false; ///< the user resumed the run with this link after the run had ended
    bool operator==(const LinkJob&) const = default;
};
std::string to_json(const LinkJob& link);
Result<LinkJob> link_job_from_json(std::string_view text);

/// runs/KEY/ended.json.
std::string to_json(const Ending& ending);
Result<Ending> ending_from_json(std::string_view text);

/// runs/KEY/walltime.json: replaces the walltime, and possibly the chain, of the request.
struct WalltimeChange {
    std::chrono::minutes walltime{0};
    std::string by; ///< user@host
    Time at;
    std::optional<Chain> chain; ///< unset: the request's
    bool operator==(const WalltimeChange&) const = default;
};
void apply(const WalltimeChange& change, Request& request);
std::string to_json(const WalltimeChange& change);
Result<WalltimeChange> walltime_change_from_json(std::string_view text);
/// runs/KEY/shown.json: offsets of the first output bytes that no client has shown yet, as far as
/// the clients could record them.
struct Shown {
    std::uint64_t out = 0, err = 0;
    LinkNumber link; ///< the link that the offsets refer to
    bool operator==(const Shown&) const = default;
};
std::string to_json(const Shown& shown);
Result<Shown> shown_from_json(std::string_view text);

/// runs/KEY/inbox/stop.json, and save_and_stop.json, which lets the program save first.
struct StopRequest {
    std::string by; ///< user@host
    Time at;
    bool operator==(const StopRequest&) const = default;
};
std::string to_json(const StopRequest& request);
Result<StopRequest> stop_request_from_json(std::string_view text);

} // namespace gpuq
