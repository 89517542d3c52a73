// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/table_output.h"

#include "cli/base/message.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

std::optional<std::size_t> terminal_width()
{
    winsize size = {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return std::nullopt;
    }
    return size.ws_col;
}

} // namespace

bool wants_color(const Globals& globals, Services& services)
{
    if (globals.color != Globals::Color::automatic) {
        return globals.color == Globals::Color::always;
    }
    const auto no_color = services.variable("NO_COLOR");
    return ::isatty(STDOUT_FILENO) == 1 && (!no_color || no_color->empty()) &&
           services.variable("TERM").value_or("dumb") != "dumb";
}

Result<void> print_table(const report::Table& table, const Globals& globals, Services& services)
{
    TRY_ASSIGN(const report::Table chosen, report::only(table, globals.columns));
    report::TableStyle style;
    style.header = !globals.no_header;
    style.color = wants_color(globals, services);
    style.light = report::is_light(services.variable("COLORFGBG").value_or(""));
    style.width = terminal_width();
    return print_text(report::to_text(chosen, style));
}

Result<void> print_line(std::string_view text)
{
    return print_text(sanitised(as_typed(text)) + "\n");
}

Result<void> print_text(std::string_view text)
{
    while (!text.empty()) {
        const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
        if (count >= 0) {
            text.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN) {
            pollfd room{STDOUT_FILENO, POLLOUT, 0};
            ::poll(&room, 1, -1);
        } else if (errno == EPIPE) {
            return {};
        } else if (errno != EINTR) {
            return fail(Error::Kind::io, fmt::format("standard output: {}", std::strerror(errno)));
        }
    }
    return {};
}

} // namespace gpuq::cli
