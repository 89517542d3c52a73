// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/clock.h"
#include "ports/credentials.h"
#include "supervisor/supervise.h"

namespace gpuq::supervisor {

/// The descriptors that `gpuq-supervisor keep` is started with.
constexpr int k_keep_folder = 3;   ///< the folder of the link
constexpr int k_keep_lifeline = 4; ///< a pipe that ends when the run does
constexpr int k_keep_news = 5;     ///< a pipe: lines for the journal, written without blocking

/// Keeps a link's tickets alive until the lifeline ends: renews them (credentials/keeping.h says
/// when), takes others out of a keytab where the run has one, looks into the run's store for better
/// ones, and writes link-N/credentials.json. A renewal is made in a copy beside the cache and put
/// in its place by one rename: whoever reads finds the old ticket or the new one. Ends the process.
[[noreturn]] void keep_tickets(SecretFiles& files, Clock& clock, const Options& options);

} // namespace gpuq::supervisor
