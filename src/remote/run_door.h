// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"
#include "remote/verb_process.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::remote {

/// The way from the login host into a run, for --forward: `gpuq connect --forward-from`, which goes
/// into the run once and carries any number of connections there, from sockets in a folder of ours.
/// Opened at the first use, and again when it has ended or the run is in another job, and perhaps
/// on another node.
class RunDoor {
public:
    /// `start`: of the verb, whose environment and forwards hold here too.
    RunDoor(std::string program, wire::remote::Start start);
    ~RunDoor();
    RunDoor(const RunDoor&) = delete;
    RunDoor& operator=(const RunDoor&) = delete;

    /// Opens it to this run, unless it is open or being opened.
    Result<void> open(const wire::remote::Following& run);
    /// A connection to number `forward`; none yet. `io` when it has ended, with its last words.
    Result<Descriptor> reach(std::size_t forward);

    /// A child has ended that may be it.
    void on_child(pid_t pid);
    std::size_t forwards() const { return m_start.forwards.size(); }

private:
    void end();

    std::string m_program;
    wire::remote::Start m_start;
    std::string m_folder;
    Descriptor m_lock; ///< of the folder
    std::string m_key;
    std::uint32_t m_job = 0;
    std::optional<VerbProcess> m_process;
    bool m_ended = false;
};

} // namespace gpuq::remote
