// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/signals.h"
#include "core/result.h"
#include "io/descriptor.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

struct ForwarderOptions {
    /// Sockets listening on the ports, for each destination of the command.
    std::vector<std::vector<Descriptor>> listeners;
    /// The command whose standard streams carry the frames of streams to and from the run.
    /// `again`: it has already worked, and has ended or was killed.
    std::function<std::vector<std::string>(bool again)> command;
    /// Takes the line that the command prints first.
    std::function<Result<void>(std::string_view line)> greeting;
    /// The line is printed once the command has connected, not before.
    bool greets_when_connected = false;
    /// The result, if a command ends with this status after one has connected; unset: it is started
    /// again.
    std::function<std::optional<int>(int status)> result;
    /// Called when the command has connected for the first time.
    std::function<void()> connected = [] {};
    /// Prints a message.
    std::function<void(std::string_view)> print_message;
};

/// For `result`: the status, if another start would not help or would do harm: a refused login
/// would ask its user for a password again and again.
std::optional<int> lasting_failure(int status);

/// Carries connections of this user to the ports until a signal arrives or the command ends for
/// good. Returns the exit status: 130 after Ctrl-C, 129 after another signal, that of a command
/// before any has connected, else `result`.
/// Before the command has connected, Ctrl-C is left to it: it belongs to the same process group.
Result<int> forward_ports(ForwarderOptions options, Signals& signals);

} // namespace gpuq::cli
