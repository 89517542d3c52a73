// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/credentials.h"
#include "supervisor/base/external.h"

#include <string>

namespace gpuq::supervisor {

/// Returns the absolute path of the program that makes AFS tokens from a ticket: the plan's, else
/// `aklog` from PATH if this node has AFS. Empty: no tokens are needed.
std::string aklog_of(const CredentialPlan& plan);

/// Gives this process, and all it starts from now on, AFS tokens of its own: in a process
/// authentication group with OpenAFS, otherwise in a session keyring. Does nothing if neither is
/// available.
void make_pag();

/// Runs `aklog` to make tokens from the tickets in `cache` (FILE:...); waits for at most 5 s.
/// Returns its error message, or an empty string on success.
std::string make_tokens(const std::string& aklog, const std::string& cache);
/// The error message for an `aklog` that has ended; empty on success.
std::string tokens_trouble(const std::string& aklog, const External::Ended& ended);

} // namespace gpuq::supervisor
