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

/// The channel from the login host into a run, for --forward: `gpuq connect --dial`, whose standard
/// streams carry frames to and from a dialer on the run's node (dialer.h). It is opened at the
/// first use, and again after it has ended or when the run has moved to another job, possibly on
/// another node.
class RunChannel {
public:
    /// `start`: the Start frame of the verb, whose environment and forwards apply here too.
    RunChannel(std::string program, wire::remote::Start start);
    ~RunChannel();
    RunChannel(const RunChannel&) = delete;
    RunChannel& operator=(const RunChannel&) = delete;

    /// Opens the channel to this run. True if it was newly opened: streams of a previous channel
    /// are lost.
    Result<bool> open(const wire::remote::Following& run);
    /// The channel to the dialer; null when not open.
    Channel* channel() { return m_channel ? &*m_channel : nullptr; }
    /// To be called when the dialer has sent a frame.
    void answered() { m_answered = true; }
    /// Closes the channel after its end. Returns the reason that its process has printed; empty
    /// when the dialer had answered before.
    std::string close();

    /// To be called for every child that has ended.
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
