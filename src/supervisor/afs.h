// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/credentials.h"
#include "supervisor/external.h"

#include <string>

namespace gpuq::supervisor {

/// The absolute path of the program that makes AFS tokens of a ticket: the one that the plan has,
/// else `aklog` of PATH where this node has AFS. Empty: there is nothing to do.
std::string aklog_of(const CredentialPlan& plan);

/// Gives this process, and all that it starts from now on, AFS tokens of its own: a process
/// authentication group where OpenAFS is, a session keyring else. Without either, nothing.
void make_pag();

/// Executes it, for tokens of the tickets in `cache` (FILE:...), and waits for 5 s at most. What it
/// has said when it fails, else empty.
std::string make_tokens(const std::string& aklog, const std::string& cache);
/// That in words, of one that has ended; empty: it went well.
std::string tokens_trouble(const std::string& aklog, const External::Ended& ended);

} // namespace gpuq::supervisor
