// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "remote/channel.h"
#include "remote/verb_process.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::remote {

/// The way from the login host into a run, for --forward: `gpuq connect --dial`, whose standard
/// streams carry frames to and from a dialer on the run's node (dialer.h). Opened at the first use,
/// and again when it has ended or the run is in another job, and perhaps on another node.
class RunDoor {
public:
    /// `start`: of the verb, whose environment and forwards hold here too.
    RunDoor(std::string program, wire::remote::Start start);
    ~RunDoor();
    RunDoor(const RunDoor&) = delete;
    RunDoor& operator=(const RunDoor&) = delete;

    /// Opens it to this run. True: it was not open, and what went through another one is gone.
    Result<bool> open(const wire::remote::Following& run);
    /// To the dialer; null when it is not open.
    Channel* channel() { return m_channel ? &*m_channel : nullptr; }
    /// The dialer has sent a frame.
    void answered() { m_answered = true; }
    /// It has come to its end: why, in its own words; empty when the dialer has answered before.
    std::string close();

    /// A child has ended that may be it.
    void on_child(pid_t pid);
    std::size_t forwards() const { return m_start.forwards.size(); }

private:
    void end();

    std::string m_program;
    wire::remote::Start m_start;
    std::string m_key;
    std::uint32_t m_job = 0;
    std::optional<VerbProcess> m_process;
    std::optional<Channel> m_channel;
    bool m_ended = false;
    bool m_answered = false;
};

} // namespace gpuq::remote
