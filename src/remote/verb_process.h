// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"
#include "wire/remote_frame.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpuq::remote {

/// Environment variable with a descriptor number. A verb that shows a run writes lines to it with
/// the run and the position from which it shows it (Following), and reads how many of its marks
/// (k_mark) have been reached.
constexpr const char* k_serve_descriptor = "GPUQ_SERVE_FD";

/// Environment variable with the command by which the user calls gpuq: `gpuq --host login1`.
constexpr const char* k_called = "GPUQ_CALLED";

/// A verb run for a remote client, in its own session. It gets SIGHUP when its parent dies.
struct VerbProcess {
    pid_t pid = -1;
    Descriptor terminal; ///< master side of its terminal, if it has one
    Descriptor input;    ///< its stdin, if that is a pipe
    Descriptor out, err; ///< unless they are the terminal
    Descriptor facts;    ///< the other end of k_serve_descriptor, a socket
};

/// Starts `program` with the arguments in `start`. `missing` when the directory does not exist;
/// `io`.
Result<VerbProcess> start_verb(const std::string& program, const wire::remote::Start& start);

/// True for variables that a client may set.
bool may_pass(std::string_view variable);

/// `KEY JOB LINK OUT ERR`, as written by a verb.
std::string line_of(const wire::remote::Following& following);
std::optional<wire::remote::Following> following_from(std::string_view line);
/// `SSH KEY JOB USER`: the target found by `connect --config` on the login host.
std::string line_of(const wire::remote::SshTarget& target);
std::optional<wire::remote::SshTarget> ssh_target_from(std::string_view line);
/// `OWN BYTES`: the next bytes on stderr are a message of gpuq and not output of the run.
std::string line_of_own(std::uint64_t bytes);
/// Marks the end of all output that the verb has written so far. When that output has been shown to
/// the user, a line with the number of marks reached is sent back.
constexpr std::string_view k_mark = "MARK";
std::optional<std::uint64_t> own_from(std::string_view line);
/// `LEFT BYTES`: the program did not read this many of the bytes that the verb has read for it.
std::string line_of_left(std::uint64_t bytes);
std::optional<std::uint64_t> left_from(std::string_view line);

} // namespace gpuq::remote
