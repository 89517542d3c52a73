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

/// One line of a link's journal: what happened, when and why. The line is a JSON object with
/// `"v": 1`, `"at"`, `"event"` and the fields that are set.
struct Event {
    enum class Kind {
        supervisor_started, ///< job, host, pid; detail: the partition
        program_started,    ///< pid
        warned,             ///< detail: "15 minutes left"
        signalled,          ///< the supervisor got a signal: detail is its name
        stop_asked,         ///< detail: by whom
        log_lost,           ///< stream, from, to: output bytes that are not in the log
        noticed,            ///< the program was told to save and leave; detail: why; to: how many
                            ///< of its processes on the first node got a signal
        notice_failed,      ///< not on all of the other nodes; detail: why
        checkpoint,         ///< a new whole one: detail is its path; from: step, to: bytes
        resumed,            ///< detail: the checkpoint to go on from, or empty; cause of the link
        code_changed,       ///< since the link before began; detail: the program's own files
        next_submitted,     ///< job: the next link's
        next_failed,        ///< detail: why the next link could not be submitted
        other_user,  ///< detail: what of this run another user of the machine has taken, and what
                     ///< it uses instead or refuses
        credentials, ///< detail: what is wrong with its ticket or token, or that it is mended
        memory_kill, ///< the kernel killed processes of the run: host; to: how many
        memory_kill_nearby, ///< the same, of the node; nothing counts those of the run
        ended,              ///< status, cause, detail, continues, tail: the last lines of output;
                            ///< to: processes killed for memory, where they were counted
    };
    Kind kind = Kind::supervisor_started;
    Time at;
    std::optional<std::uint32_t> job;
    std::optional<std::string> host;
    std::optional<int> pid;
    std::optional<Stream> stream;
    std::optional<std::uint64_t> from, to;
    std::optional<int> status;
    std::optional<Cause> cause;
    std::optional<std::string> detail;
    std::optional<std::string> tail;
    bool continues = false; ///< the next link goes on

    bool operator==(const Event&) const = default;
};

/// One line, with its newline. Bytes that are not UTF-8 in texts are replaced.
std::string to_line(const Event& event);

/// The events of a journal's bytes. A torn last line is ignored; so are lines and events that
/// this version does not know (a newer supervisor may have written them).
std::vector<Event> parse_journal(std::string_view bytes);

/// The word that stands for a cause in files and JSON: `finished`, `time_limit`, ...
std::string_view word(Cause cause);
std::optional<Cause> cause_from_word(std::string_view word);

} // namespace gpuq
