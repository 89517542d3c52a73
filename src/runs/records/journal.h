// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"
#include "core/run.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// One line of a link's journal. The line is a JSON object with `"v": 1`, `"at"`, `"event"` and the
/// fields that are set.
struct Event {
    enum class Kind {
        supervisor_started, ///< job, host, pid; detail: the partition; address: where it accepts
                            ///< clients over the network; to: the Unix time at which the link
                            ///< ends
        program_started,    ///< pid
        warned,             ///< detail: "15 minutes left"
        signalled,          ///< the supervisor got a signal; detail: its name
        stop_asked,         ///< detail: by which user
        log_lost,           ///< stream, from, to: output bytes that are not in the log
        noticed, ///< the program was notified to save and exit; detail: why; to: how many of its
                 ///< processes on the first node got a signal
        notice_failed,  ///< the notice did not reach all of the other nodes; detail: why
        checkpoint,     ///< a new complete checkpoint; detail: its path; from: step; to: bytes
        resumed,        ///< detail: the checkpoint to resume from, or empty; status and cause: the
                        ///< previous link's, if it recorded none itself
        code_changed,   ///< since the previous link began; detail: the changed files of the program
        next_submitted, ///< job: the next link's
        next_failed,    ///< detail: why the next link could not be submitted
        other_user,  ///< detail: the resource of this run that another user of the host has taken,
                     ///< and how the run works around it or fails
        credentials, ///< detail: the problem with its ticket or token, or that it is solved
        memory_kill, ///< the kernel killed processes of the run: host; to: how many
        memory_kill_nearby, ///< the same on a node whose kills are not counted by job: they may be
                            ///< of other jobs
        ended, ///< status, cause, detail, continues, tail: the last lines of output; to: processes
               ///< killed for memory, if counted
        limit_changed, ///< the time limit in Slurm; to: as of supervisor_started
    };
    Kind kind = Kind::supervisor_started;
    Time at;
    std::optional<std::uint32_t> job;
    std::optional<std::string> host;
    std::optional<std::string> address; ///< numeric, with a port (io/network_socket.h)
    std::optional<int> pid;
    std::optional<Stream> stream;
    std::optional<std::uint64_t> from, to;
    std::optional<int> status;
    std::optional<Cause> cause;
    std::optional<std::string> detail;
    std::optional<std::string> tail;
    bool continues = false; ///< the next link continues the run

    bool operator==(const Event&) const = default;
};

/// One line, including its newline. Bytes that are not UTF-8 are replaced.
std::string to_line(const Event& event);

/// Parses a journal. An incomplete last line is ignored; so are lines and events that this version
/// does not know (a newer supervisor may have written them).
std::vector<Event> parse_journal(std::string_view bytes);

/// The name of a cause in files and JSON: `finished`, `time_limit`, ...
std::string_view word(Cause cause);
std::optional<Cause> cause_from_word(std::string_view word);

} // namespace gpuq
