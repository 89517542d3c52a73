// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "tui/model.h"

#include <functional>

/// The full-screen view: what the outside calls, and what it calls outside.
namespace gpuq::tui {

/// All of them may block; each of the first four is called by one thread of its own, `now` by any.
struct Sources {
    /// What is known: from the disk, and what `ask` has learnt.
    std::function<Picture()> look;
    /// What takes longer to find out, of one run.
    std::function<Detail(const std::string& key)> look_closer;
    /// Asks Slurm what is due; `anew`: a person wants it now.
    std::function<void(bool anew)> ask;
    /// What a log has beyond what was given before; called again and again for one that is open.
    /// `begin`: it has only been opened. Nothing when there is nothing new.
    std::function<std::optional<LogBytes>(const OpenLog& log, bool begin)> read;
    /// Does a gpuq command. Those that take the terminal are called on the screen's own thread.
    std::function<Done(const Command& command)> command;
    /// Says what a run would be and starts none, on a thread of its own.
    std::function<Done(const Try& attempt)> try_out;
    std::function<Time()> now;
};

/// Shows it until the person leaves. `usage` when there is no terminal, or one that is not known.
Result<void> run(Sources sources, bool colour);

/// What it shows of one picture, as text: all GPUs and all runs. `columns`: of the terminal; unset:
/// as wide as need be.
std::string once(const Picture& picture, Time now, std::optional<int> columns);

} // namespace gpuq::tui
