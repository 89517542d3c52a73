// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "runs/status.h"
#include "tui/model.h"

#include <cstdint>
#include <optional>
#include <string>

/// The output of a plain job: the files that Slurm names, if this host has them.
namespace gpuq::cli {

/// `gpuq logs [-f] [--printable]` for a plain job: copies its files to standard output and error.
/// With -f continues until the job has ended and returns its exit status. Opens only regular files
/// that belong to the calling user (Files). `missing` states where the output is instead.
Result<int> plain_logs(Invocation& invocation, Store& store, const RunStatus& job);

/// The end of one stream as it grows, for the full-screen view.
class PlainTail {
public:
    PlainTail(Files& files, RunStatus job, Stream stream);

    /// The new output; nothing if there is none.
    std::optional<tui::LogBytes> next(const tui::OpenLog& log);

private:
    Files& m_files;
    RunStatus m_job;
    Stream m_stream;
    std::optional<std::uint64_t> m_at; ///< unset: nothing shown yet
};

} // namespace gpuq::cli
