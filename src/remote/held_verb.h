// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/event_loop.h"
#include "remote/verb_facts.h"
#include "remote/verb_input.h"
#include "remote/verb_output.h"
#include "remote/verb_process.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::remote {

/// The verb of a holder (holder.h): its process, its terminal and its streams. It is started once.
class HeldVerb {
public:
    /// `send_frame` sends a frame to the client; false if none is connected.
    HeldVerb(EventLoop& loop, const std::function<bool(const frames::Frame&)>& send_frame);

    /// The errors of start_verb().
    Result<void> start(const std::string& program, const frames::Start& start);
    bool is_started() const { return m_process.has_value(); }
    /// Exit status as of a shell, when the process has ended.
    const std::optional<int>& status() const { return m_status; }

    /// To be called for every child that has ended; true for the verb.
    bool on_child(pid_t pid, int wait_status);
    /// The errors of VerbInput::take(); `internal` if the verb is not started.
    Result<void> take(const frames::Input& input);
    /// Signals the foreground process group, as a terminal does.
    void signal(int number) const;
    void resize(const frames::Resize& resize) const;
    /// Sends HUP, and later TERM and KILL if it does not end.
    void hang_up();
    bool is_hung_up() const { return m_hang_ups > 0; }

    /// Bytes of input that the verb, or the program it shows, has read. To be called when the verb
    /// has ended.
    std::uint64_t input_read() const;

    VerbOutput& output() { return m_output; }
    VerbInput& input() { return m_input; }
    VerbFacts& facts() { return m_facts; }
    const VerbOutput& output() const { return m_output; }
    const VerbInput& input() const { return m_input; }

private:
    bool is_running() const { return m_process && !m_status; }

    std::optional<VerbProcess> m_process;
    std::optional<int> m_status;
    int m_hang_ups = 0;
    EventLoop::Timer m_kill_timer;
    VerbOutput m_output;
    VerbFacts m_facts;
    VerbInput m_input;
};

} // namespace gpuq::remote
