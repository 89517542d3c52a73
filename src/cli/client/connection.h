// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"
#include "ports/step_process.h"
#include "wire/frame.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpuq::cli {

/// One connection to a supervisor: the streams of a step (the supervisor's own, a relay's or a
/// guard's) or, on the run's own node, its socket. Owns the descriptors, not the process. Blocks
/// only in flush() and, during a flood of output, for 1 ms in read_some().
class Connection {
public:
    enum class Kind { first, relay, guard, direct, network };
    Connection(Kind kind, const StepProcess& process);
    /// For a socket from Host::connect_to, or one that is being connected over the network.
    Connection(Kind kind, Descriptor socket);

    Kind kind() const { return m_kind; }
    const StepProcess& process() const { return m_process; }
    int output() const { return m_output.get(); }
    int error() const { return m_error.get(); }
    /// The descriptor to poll for POLLOUT, or -1 when nothing is queued.
    int wants_to_write() const { return m_outgoing.empty() ? -1 : m_input.get(); }

    void send(const wire::Frame& frame);
    void write_some();
    /// Sends the queued frames; waits for at most `limit`.
    void flush(std::chrono::milliseconds limit);

    /// Reads the bytes available; during a flood of output, first waits 1 ms for more to arrive.
    /// False at the end of the connection or after a protocol error.
    bool read_some();
    /// Keeps the end of the step client's stderr (srun's errors) for a message.
    void read_errors();
    const std::string& errors() const { return m_errors; }
    /// The next complete frame, if any. Acknowledges output to the supervisor as it is returned.
    std::optional<wire::Frame> next();

    /// Enlarges the pipe to the maximum and limits the supervisor's unacknowledged output to its
    /// capacity, so that nothing accumulates in Slurm's processes while this one does not read
    /// (wire/frame.h); over the network, limits the bytes that the kernels hold. Does nothing for
    /// a direct connection.
    void limit_output();

    /// Whether next() has met bytes that are no frame: nothing more is to be expected.
    bool is_broken() const { return m_broken; }

    bool has_greeted = false; ///< its Hello has been received

private:
    void let_gather();
    void report_taken();

    Kind m_kind;
    StepProcess m_process; ///< the next three members own its descriptors
    Descriptor m_input;
    Descriptor m_output;
    Descriptor m_error;
    wire::Decoder m_decoder;
    std::string m_outgoing;
    std::string m_errors;
    bool m_broken = false;
    std::uint64_t m_room = 0; ///< most unacknowledged bytes; 0: no limit set
    std::uint64_t m_taken = 0;
    std::uint64_t m_reported = 0;
    std::chrono::steady_clock::time_point m_stretch_begun{};
    std::size_t m_in_stretch = 0;
};

} // namespace gpuq::cli
