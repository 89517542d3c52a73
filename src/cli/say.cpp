// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/say.h"

#include "core/sanitise.h"

#include <string>
#include <unistd.h>

namespace gpuq::cli {

void say(std::string_view text, Cursor cursor)
{
    const bool terminal = isatty(STDERR_FILENO) == 1;
    const bool raw = terminal && cursor == Cursor::raw;
    std::string line = raw ? "\r\n" : terminal && cursor == Cursor::middle ? "\n" : "";
    line += "gpuq: " + sanitised(text) + (raw ? "\r\n" : "\n");
    // One write: lines of several processes do not mix. There is nobody to tell when it fails.
    [[maybe_unused]] const ssize_t count = ::write(STDERR_FILENO, line.data(), line.size());
}

} // namespace gpuq::cli
