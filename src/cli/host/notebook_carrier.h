// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/signals.h"
#include "cli/base/verb.h"
#include "core/result.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

struct CarrierOptions {
    std::string session;              ///< a name for this use of the gate, as in wire::remote::Open
    std::vector<std::string> command; ///< connects to the gate over its standard streams
    /// Called when the gate has answered for the first time. Its text is written to `out` first.
    std::function<std::string()> connected;
    /// Called every second: the exit status, once the run has ended.
    std::function<std::optional<int>()> ended;
    Signals* signals = nullptr; ///< of this process; must outlive the call
    int in = 0, out = 1;
};

/// Random hexadecimal digits: for names and tokens that others must not guess.
std::string random_digits(Services& services, std::size_t count);

/// Carries bytes between `in` and `out` and the gate of a notebook. The command may be killed at
/// any time: it is started again, and no byte is lost or repeated. Returns when `in` has ended,
/// with 0, when the run has ended, or after a signal, once the gate has confirmed the end. `lost`:
/// the gate has lost its connections.
Result<int> carry_notebook(CarrierOptions options);

} // namespace gpuq::cli
