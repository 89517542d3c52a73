// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/clock.h"
#include "ports/credentials.h"
#include "supervisor/base/context.h"

namespace gpuq::supervisor {

/// File descriptors passed to `gpuq-supervisor keep`.
constexpr int k_keep_directory = 3; ///< the directory of the link
constexpr int k_keep_lifeline = 4;  ///< a pipe that closes when the run ends
constexpr int k_keep_news = 5;      ///< a pipe for journal lines, written without blocking

/// Keeps a link's tickets alive until the lifeline closes: renews them (credentials/keeping.h
/// determines when), gets new ones from the run's keytab if there is one, checks the run's store
/// for better ones, and writes link-N/credentials.json. A renewal is made in a copy of the cache,
/// which then replaces it with one rename, so readers see the old ticket or the new one. Ends the
/// process.
[[noreturn]] void keep_tickets(SecretFiles& files, Clock& clock, const Options& options);

} // namespace gpuq::supervisor
