// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "runs/status.h"
#include "tui/model.h"

#include <cstdint>
#include <optional>
#include <string>

/// The output of a plain job: the files that Slurm names, where this host has them.
namespace gpuq::cli {

/// `gpuq logs [-f] [--printable]` of a plain job: what its files hold, to standard output and
/// error. With -f until the job has ended, and its exit status then. Opened as the calling user's
/// own regular files only (Files). `missing` says where the output is instead.
Result<int> plain_logs(Invocation& invocation, Store& store, const RunStatus& job);

/// The end of one stream as it grows, for the screen.
class PlainTail {
public:
    PlainTail(Files& files, RunStatus job, Stream stream);

    /// What is new; nothing when there is nothing.
    std::optional<tui::LogBytes> next(const tui::OpenLog& log);

private:
    Files& m_files;
    RunStatus m_job;
    Stream m_stream;
    std::optional<std::uint64_t> m_at; ///< unset: nothing was shown yet
};

} // namespace gpuq::cli
