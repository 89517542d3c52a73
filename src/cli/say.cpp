// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/say.h"

#include "core/sanitise.h"

#include <string>
#include <unistd.h>

namespace gpuq::cli {

void say(std::string_view text, Cursor cursor)
{
    std::string line = cursor == Cursor::middle && isatty(STDERR_FILENO) == 1 ? "\n" : "";
    line += "gpuq: " + sanitised(text) + "\n";
    // One write: lines of several processes do not mix. There is nobody to tell when it fails.
    [[maybe_unused]] const ssize_t count = ::write(STDERR_FILENO, line.data(), line.size());
}

} // namespace gpuq::cli
