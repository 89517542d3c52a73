// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/signals.h"
#include "core/result.h"
#include "io/descriptor.h"

#include <functional>
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
    /// Whether the exit status of a command that was started again means that the run has ended.
    std::function<bool(int status)> means_ended;
    /// Called when the command has connected for the first time.
    std::function<void()> connected = [] {};
    /// Prints a message.
    std::function<void(std::string_view)> print_message;
};

/// Carries connections of this user to the ports until a signal arrives or the run has ended: a
/// command that has connected once is started again whatever ends it. Returns the exit status: 130
/// after Ctrl-C, 129 after another signal, that of a command that has never connected, else 0.
/// Before the command has connected, Ctrl-C is left to it: it belongs to the same process group.
Result<int> forward_ports(ForwarderOptions options, Signals& signals);

} // namespace gpuq::cli
