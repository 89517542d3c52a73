// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <string_view>

namespace gpuq::cli {

/// Writes the program's bytes to this process's stdout and stderr; blocks while the reader is slow.
/// During its lifetime a closed pipe is an error of write(2), not a signal.
class LogOutput {
public:
    LogOutput();
    ~LogOutput();
    LogOutput(const LogOutput&) = delete;
    LogOutput& operator=(const LogOutput&) = delete;

    /// 0, or the errno of the failed write: EPIPE if the reader has closed the stream.
    int write(Stream stream, std::string_view bytes);
    /// False if the cursor is in the middle of a line.
    bool at_line_start() const { return m_last_byte == '\n'; }

private:
    using Handler = void (*)(int);
    Handler m_before;
    char m_last_byte = '\n';
};

/// The exit status of a command whose write() has failed with `error`. The reader of a pipe may
/// close it: then 0, or that of a killed filter if the command follows a run. Prints other errors.
int status_of_failed_write(int error, bool follows);

} // namespace gpuq::cli
