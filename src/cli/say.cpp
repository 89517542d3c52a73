// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/say.h"

#include "core/sanitise.h"

#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

std::string in_the_last_row(const std::string& words)
{
    winsize size{};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    const std::size_t width = known ? size.ws_col : 80;
    // Cursor and attributes saved, to the last row, reverse; and back.
    return "\x1b"
           "7\x1b[999;1H\x1b[0;7m" +
           clipped(words, width) +
           "\x1b[0m\x1b[K\x1b"
           "8";
}

std::string line_of(const std::string& words, Cursor cursor)
{
    switch (cursor) {
    case Cursor::line_start:
        break;
    case Cursor::middle:
        return "\n" + words + "\n";
    case Cursor::raw:
        return "\r\n" + words + "\r\n";
    case Cursor::other_screen:
        return in_the_last_row(words);
    }
    return words + "\n";
}

} // namespace

void say(std::string_view text, Cursor cursor)
{
    const bool terminal = isatty(STDERR_FILENO) == 1;
    const std::string line =
        line_of("gpuq: " + sanitised(text), terminal ? cursor : Cursor::line_start);
    // One write: lines of several processes do not mix. There is nobody to tell when it fails.
    [[maybe_unused]] const ssize_t count = ::write(STDERR_FILENO, line.data(), line.size());
}

} // namespace gpuq::cli
