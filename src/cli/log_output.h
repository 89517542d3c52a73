// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <string_view>

namespace gpuq::cli {

/// Writes the program's bytes to this process's stdout and stderr, waiting while a reader is slow.
/// While it lives a reader that leaves is an error of the write, not a signal.
class LogOutput {
public:
    LogOutput();
    ~LogOutput();
    LogOutput(const LogOutput&) = delete;
    LogOutput& operator=(const LogOutput&) = delete;

    /// 0, or the errno with which the stream refused the bytes: EPIPE when its reader has left.
    int write(Stream stream, std::string_view bytes);
    /// False after bytes that leave the cursor in the middle of a line.
    bool at_line_start() const { return m_last_byte == '\n'; }

private:
    using Handler = void (*)(int);
    Handler m_before;
    char m_last_byte = '\n';
};

} // namespace gpuq::cli
