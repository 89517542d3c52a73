// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"
#include "wire/remote_frame.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpuq::remote {

/// The variable whose value is a descriptor: a verb that shows a run writes there which, and from
/// where on (Following), a line each, and reads how many of its marks (k_mark) have been reached.
constexpr const char* k_serve_descriptor = "GPUQ_SERVE_FD";

/// The variable that says how the person calls gpuq here: `gpuq --host login1`.
constexpr const char* k_called = "GPUQ_CALLED";

/// A verb that runs for somebody far away, in a session of its own: hung up when its parent dies.
struct VerbProcess {
    pid_t pid = -1;
    Descriptor terminal; ///< our side of its terminal, if it has one
    Descriptor input;    ///< its stdin, where that is a pipe
    Descriptor out, err; ///< where they are no terminal
    Descriptor facts;    ///< the other end of k_serve_descriptor, a socket
};

/// Starts `program` with the words of `start`. `missing` when there is no such folder; `io`.
Result<VerbProcess> start_verb(const std::string& program, const wire::remote::Start& start);

/// One of the variables that a client may set.
bool may_pass(std::string_view variable);

/// `KEY JOB LINK OUT ERR`, as a verb writes it.
std::string line_of(const wire::remote::Following& following);
std::optional<wire::remote::Following> following_from(std::string_view line);
/// `SSH KEY JOB USER`: what `connect --config` there has found.
std::string line_of(const wire::remote::SshTarget& target);
std::optional<wire::remote::SshTarget> ssh_target_from(std::string_view line);
/// `OWN BYTES`: what follows on stderr is gpuq's own, and no part of what the run has printed.
std::string line_of_own(std::uint64_t bytes);
/// A mark behind all that the verb has written until now. When that has been shown to the person, a
/// line with the number of marks until then comes back.
constexpr std::string_view k_mark = "MARK";
std::optional<std::uint64_t> own_from(std::string_view line);

} // namespace gpuq::remote
