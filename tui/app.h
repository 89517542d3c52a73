// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "tui/model.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// The full-screen view: its entry points, and the functions that it calls.
namespace gpuq::tui {

/// How much of a run's details: those that the list of runs shows, or all.
enum class Depth { list, all };

/// All functions may block. Each is called by a thread of its own; `command` also by the screen's
/// thread, `now` by any.
struct Sources {
    /// The state: from disk, and from the responses obtained by `ask`.
    std::function<Picture()> read_picture;
    /// Details of one run, which take longer to collect.
    std::function<Detail(const std::string& key, Depth depth)> read_detail;
    /// Several runs side by side; on the thread of read_detail.
    std::function<Comparison(const std::vector<std::string>& keys)> compare;
    /// Queries Slurm if a query is due, or is wanted now.
    std::function<void(Anew anew)> ask;
    /// New output of a log; called repeatedly while the log is open. `begin`: it has just been
    /// opened. Nothing if there is no new output.
    std::function<std::optional<LogBytes>(const OpenLog& log, bool begin)> read;
    /// Executes a gpuq command. Those that take the terminal are called on the screen's own thread.
    std::function<Done(const Command& command)> command;
    /// Describes the run that a command would start, without starting it.
    std::function<Done(const Try& attempt)> try_out;
    /// The words that the last argument of a gpuq command may become; on the thread of try_out.
    std::function<std::vector<std::string>(const std::vector<std::string>& arguments)> complete;
    std::vector<std::string> verbs; ///< first words of gpuq's commands; empty: unknown
    std::function<Time()> now;
    /// Gives a notice outside the screen and its terminal; never blocks. On the screen's thread,
    /// or, while that waits for a command on the terminal, on the one that takes its messages.
    std::function<void(const Notify& event)> notify;
};

/// Shows the view until the user quits. `usage` if there is no terminal, or if its type is unknown.
Result<void> run(Sources sources, Colours colours);

} // namespace gpuq::tui
