// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"
#include "ports/cluster.h"
#include "wire/frame.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpuq::cli {

/// One way to a supervisor: the streams of a step (the supervisor's own, a relay's, a guard's), or
/// its socket, on the node itself. Owns the descriptors, not the process. Never blocks.
class Connection {
public:
    enum class Kind { first, relay, guard, direct };
    Connection(Kind kind, const StepProcess& process);
    /// Directly: of Host::connect_to.
    explicit Connection(Descriptor socket);

    Kind kind() const { return m_kind; }
    const StepProcess& process() const { return m_process; }
    int output() const { return m_output.get(); }
    int error() const { return m_error.get(); }
    /// The descriptor to wait on for room, or -1 when nothing waits to be sent.
    int wants_to_write() const { return m_outgoing.empty() ? -1 : m_input.get(); }

    void send(const wire::Frame& frame);
    void write_some();
    /// Sends what is left, for at most `limit`.
    void flush(std::chrono::milliseconds limit);

    /// Reads what is there; in a flood of output, what a millisecond brings. False at the end of
    /// the connection or when it speaks nonsense.
    bool read_some();
    /// Keeps the last words of the step's client (srun's errors) for a message.
    void read_errors();
    const std::string& errors() const { return m_errors; }
    /// The next frame that has come in. Tells the other side what has been read.
    std::optional<wire::Frame> next();

    /// Makes the pipe as large as may be, and tells the other side to send no more than fits in:
    /// nothing piles up in Slurm's processes while this one does not read (wire/frame.h). Does
    /// nothing where there are none between.
    void limit_output();

    bool greeted = false; ///< its Hello has come

private:
    void let_gather();
    void tell_taken();

    Kind m_kind;
    StepProcess m_process; ///< whose descriptors the next three own
    Descriptor m_input;
    Descriptor m_output;
    Descriptor m_error;
    wire::Decoder m_decoder;
    std::string m_outgoing;
    std::string m_errors;
    bool m_broken = false;
    std::uint64_t m_room = 0; ///< 0: no limit was set
    std::uint64_t m_taken = 0;
    std::uint64_t m_told = 0;
    std::chrono::steady_clock::time_point m_stretch_begun{};
    std::size_t m_in_stretch = 0;
};

} // namespace gpuq::cli
