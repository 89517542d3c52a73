// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/result.h"

namespace gpuq::cli {

/// The line that precedes the bytes of the streams.
constexpr const char* k_tensorboard_greeting = "TENSORBOARD 1";

/// The part of `gpuq tensorboard` on the host with the runs: starts TensorBoard on a local socket
/// in a private directory, with links to the event files of the runs, and carries its streams over
/// the standard streams. TensorBoard ends with it.
Result<int> carry_tensorboard_of(Invocation& invocation);

/// Connects the standard streams with the gate (remote/gate.h) of that name.
Result<int> join_tensorboard(const std::string& gate);

} // namespace gpuq::cli
