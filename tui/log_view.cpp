// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/log_view.h"

#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/runs_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace gpuq::tui {
namespace {

/// A row of a log: the line, and the row within the wrapped line.
struct Place {
    std::size_t line = 0, row = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null pointer in a default <=>
    auto operator<=>(const Place&) const = default;
};

/// More than a day of output.
constexpr std::ptrdiff_t k_most_times = 100'000;

int height_of(const Rect& area)
{
    return std::max(area.height - 1, 1); // below the title
}

/// `49 kB`, `7.0 MB`, `123 MB`.
std::string size_text(std::uint64_t bytes)
{
    const double megabytes = static_cast<double>(bytes) / 1e6;
    return bytes < 1'000'000  ? fmt::format("{} kB", bytes / 1000)
           : megabytes < 9.95 ? fmt::format("{:.1f} MB", megabytes)
                              : fmt::format("{:.0f} MB", megabytes);
}

/// The width of the times, with a blank.
constexpr int k_time_width = 15;

/// When a line began: `11-28 16:40:07`, or `?`. Empty for a line that has not begun, behind the
/// last one.
std::string time_text(const OpenedLog& log, std::size_t line)
{
    if (line + 1 == log.text.lines().size() && text_of(log.text.lines()[line]).empty()) {
        return "";
    }
    const std::uint64_t offset = log.skipped + log.text.begin_of(line);
    const auto mark =
        std::upper_bound(log.times.begin(), log.times.end(), offset,
                         [](std::uint64_t at, const LogMoment& each) { return at < each.size; });
    const bool is_known = mark != log.times.begin() && mark != log.times.end();
    return is_known ? short_moment_text(mark->at) : "?";
}

std::vector<Line> rows_of(const OpenedLog& log, std::size_t line, int columns)
{
    const Line& text = log.text.lines()[line];
    const int room = std::max(columns - (log.with_times ? k_time_width : 0), 1);
    std::vector<Line> rows = log.wrap ? folded(text, room) : std::vector<Line>{text};
    if (log.with_times) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::string time = i == 0 ? time_text(log, line) : "";
            rows[i].insert(rows[i].begin(), {fmt::format("{:<{}}", time, k_time_width), dim()});
        }
    }
    return rows;
}

/// The text of the program in a row.
std::string output_in(const OpenedLog& log, const Line& row)
{
    return text_of(row).substr(log.with_times ? k_time_width : 0);
}

/// A cursor at the beginning of a line needs no row.
std::size_t count_of(const std::deque<Line>& lines)
{
    return lines.size() > 1 && lines.back().empty() ? lines.size() - 1 : lines.size();
}

void show_from(OpenedLog& log, Place place)
{
    log.top = place.line;
    log.top_row = place.row;
}

/// The first row shown if the last line is at the bottom.
Place last_top(const OpenedLog& log, const Rect& area)
{
    auto room = static_cast<std::size_t>(height_of(area));
    std::size_t at = count_of(log.text.lines());
    while (at > 0) {
        const std::size_t rows = rows_of(log, --at, area.width).size();
        if (rows >= room) {
            return {at, rows - room};
        }
        room -= rows;
    }
    return {};
}

Place moved(const OpenedLog& log, const Rect& area, Place place, int by)
{
    const std::size_t count = log.text.lines().size();
    const auto rows = [&](std::size_t line) { return rows_of(log, line, area.width).size(); };
    for (; by > 0; --by) {
        if (place.row + 1 < rows(place.line)) {
            ++place.row;
        } else if (place.line + 1 < count) {
            place = {place.line + 1, 0};
        }
    }
    for (; by < 0; ++by) {
        if (place.row > 0) {
            --place.row;
        } else if (place.line > 0) {
            place = {place.line - 1, rows(place.line - 1) - 1};
        }
    }
    return place;
}

/// Whether output precedes the part that can be scrolled to.
bool is_part(const OpenedLog& log)
{
    return log.skipped > 0 || log.text.gone() > 0;
}

/// The first line shown; empty while the end is followed.
std::string place_text(const OpenedLog& log)
{
    const std::size_t count = std::max<std::size_t>(count_of(log.text.lines()), 1);
    return log.follow ? ""
                      : fmt::format(", line {} of {} {}", std::min(log.top + 1, count), count,
                                    log.behind ? "[more: G]" : "(G: end)");
}

/// A long name is cut in favour of information about the log.
std::string title_of(const OpenedLog& log, int columns)
{
    const std::string begin = fmt::format("{} of {}",
                                          log.is_joint                ? "output"
                                          : log.stream == Stream::out ? "stdout"
                                                                      : "stderr",
                                          sanitised(log.title));
    const std::string_view about = log.trouble.empty() ? log.note : log.trouble;
    const std::string note = about.empty() ? "" : sanitised(fmt::format(" [{}]", about));
    const std::string size =
        is_part(log) ? fmt::format(", the end of {}; p: all", size_text(log.bytes)) : "";
    std::string place = place_text(log);
    if (cells(begin + note + place + size) > static_cast<std::size_t>(columns)) {
        place = log.behind && !log.follow ? " [more: G]" : "";
    }
    const std::string end = note + place + size;
    const auto used = cells(begin) + cells(end) + std::string_view(" ()").size();
    const auto room = static_cast<std::size_t>(columns) -
                      std::min<std::size_t>(static_cast<std::size_t>(columns), used);
    const std::string name = room > 0 ? clipped(sanitised(log.name), room) : "";
    return clipped(begin + (name.empty() ? "" : fmt::format(" ({})", name)) + end,
                   static_cast<std::size_t>(columns));
}

std::vector<Line> last_lines(const OpenedLog& log, int columns, int height)
{
    std::vector<Line> shown;
    std::size_t at = count_of(log.text.lines());
    while (at > 0 && static_cast<int>(shown.size()) < height) {
        const std::vector<Line> parts = rows_of(log, --at, columns);
        shown.insert(shown.begin(), parts.begin(), parts.end());
    }
    if (static_cast<int>(shown.size()) > height) {
        shown.erase(shown.begin(), shown.end() - height);
    }
    return shown;
}

std::vector<Line> lines_from_top(const OpenedLog& log, int columns, int height)
{
    std::vector<Line> shown;
    const auto& lines = log.text.lines();
    std::size_t at = std::min(log.top, lines.size() - 1);
    std::size_t above = log.top_row;
    for (; at < lines.size() && static_cast<int>(shown.size()) < height; ++at) {
        const std::vector<Line> parts = rows_of(log, at, columns);
        above = std::min(above, parts.size() - 1); // the terminal may have become wider
        shown.insert(shown.end(), parts.begin() + static_cast<std::ptrdiff_t>(above), parts.end());
        above = 0;
    }
    shown.resize(std::min(shown.size(), static_cast<std::size_t>(height)));
    return shown;
}

/// Not if one more row would hide the last one of all: no key leads to it. `shown`: two rows more
/// than the height, if there are as many.
bool has_room_above(const std::vector<Line>& shown, const Line& last, int height)
{
    const int count = static_cast<int>(shown.size());
    const bool ends_empty = count < height + 2 && last.empty(); // needs no row
    return height > 2 && count - (ends_empty ? 1 : 0) != height;
}

/// The row of the wrapped line that contains the text.
std::size_t row_with(const OpenedLog& log, std::size_t line, int columns, std::string_view text)
{
    const auto parts = rows_of(log, line, columns);
    for (std::size_t row = 0; row < parts.size() && !text.empty(); ++row) {
        if (is_in(output_in(log, parts[row]), text)) {
            return row;
        }
    }
    return 0; // the match extends over two rows
}

/// Whether the piece would remove lines at which the user has stopped: they are kept, and it must
/// wait.
bool would_take_away(const OpenedLog& log, const LogBytes& piece)
{
    const auto& lines = log.text.lines();
    if (log.follow || (lines.size() == 1 && lines.front().empty())) {
        return false;
    }
    const auto more = std::count(piece.bytes.begin(), piece.bytes.end(), '\n');
    return piece.anew ||
           lines.size() + static_cast<std::size_t>(more) > LogText::k_most_lines + log.top;
}

/// Forgets those of lines that are gone.
void take_times(OpenedLog& log, const LogBytes& piece)
{
    if (piece.anew) {
        log.times.clear();
    }
    log.times.insert(log.times.end(), piece.times.begin(), piece.times.end());
    if (log.times.size() > k_most_times) {
        log.times.erase(log.times.begin(), log.times.end() - k_most_times / 2);
    }
}

/// In a row of the log; a match that extends over two rows is not tinted.
void tint_matches(Canvas& canvas, const Rect& row, const OpenedLog& log, const Line& line,
                  std::string_view found)
{
    const std::string text = output_in(log, line);
    const std::string_view output = text;
    std::size_t at = found.empty() ? std::string::npos : place_in(output, found);
    while (at != std::string::npos) {
        const int column =
            static_cast<int>(cells(output.substr(0, at))) + (log.with_times ? k_time_width : 0);
        const int width = static_cast<int>(cells(output.substr(at, found.size())));
        canvas.tint(row.top, row.left + column, std::clamp(row.width - column, 0, width), marked());
        at = place_in(output, found, at + found.size());
    }
}

} // namespace

Line title_of_log(const OpenedLog& log, int columns)
{
    return {{title_of(log, columns), bold()}};
}

void draw_log(Canvas& canvas, const Rect& area, const OpenedLog& log, std::string_view found)
{
    canvas.put(area.top, area.left, title_of_log(log, area.width), area.width);
    draw_log_lines(canvas, area, log, found);
}

void draw_log_lines(Canvas& canvas, const Rect& area, const OpenedLog& log, std::string_view found)
{
    int top = area.top + 1;
    const auto& lines = log.text.lines();
    if (lines.size() == 1 && lines.front().empty()) {
        const std::string text = log.trouble.empty() ? "nothing yet" : log.trouble;
        canvas.put(top, area.left, Line{{sanitised(text), dim()}}, area.width);
        return;
    }
    const int height = height_of(area);
    std::vector<Line> shown = log.follow ? last_lines(log, area.width, height)
                                         : lines_from_top(log, area.width, height + 2);
    int room = height;
    if (is_part(log) && !log.follow && log.top == 0 && log.top_row == 0 &&
        has_room_above(shown, lines.back(), height)) {
        const std::string text =
            fmt::format("more above: p or gpuq logs {} shows it", sanitised(log.id));
        canvas.put(top++, area.left, Line{{text, dim()}}, area.width);
        --room;
    }
    shown.resize(std::min(shown.size(), static_cast<std::size_t>(room)));
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const int row = top + static_cast<int>(i);
        canvas.put(row, area.left, shown[i], area.width);
        tint_matches(canvas, {row, area.left, 1, area.width}, log, shown[i], found);
    }
}

void scroll_log(OpenedLog& log, const Rect& area, int rows)
{
    const Place last = last_top(log, area);
    const Place from = log.follow ? last : Place{log.top, log.top_row};
    show_from(log, std::min(moved(log, area, from, rows), last));
    log.follow = log.follow && rows > 0;
}

bool is_at_end(const OpenedLog& log, const Rect& area)
{
    return log.follow || last_top(log, area) <= Place{log.top, log.top_row};
}

void show_begin(OpenedLog& log)
{
    log.follow = false;
    show_from(log, {});
}

void hold(OpenedLog& log, const Rect& area)
{
    log.follow = false;
    show_from(log, last_top(log, area));
}

bool search_log(OpenedLog& log, const Rect& area, bool forward, std::string_view text,
                bool (*matches)(std::string_view line, std::string_view text))
{
    const auto& lines = log.text.lines();
    const std::size_t count = lines.size();
    // While following the end, the newest match comes first.
    const std::size_t from = log.follow ? (forward ? count - 1 : count) : log.top;
    for (std::size_t i = 1; i <= count; ++i) {
        const std::size_t at = (from + (forward && !log.follow ? i : 2 * count - i)) % count;
        if (matches(text_of(lines[at]), text)) {
            log.follow = false;
            show_from(log, {at, log.wrap ? row_with(log, at, area.width, text) : 0});
            return true;
        }
    }
    return false;
}

bool is_error_line(std::string_view line, std::string_view /*unused*/)
{
    constexpr std::array<std::string_view, 9> k_signs = {"Traceback (most recent call last)",
                                                         "Error:",
                                                         "Exception",
                                                         "FATAL",
                                                         "Segmentation fault",
                                                         "core dumped",
                                                         "Killed",
                                                         "panic:",
                                                         "out of memory"};
    // Also compilers' `file.c:3: error:`; not `train error: 0.12`, which is a metric.
    return line.starts_with("error:") || line.find(": error:") != std::string_view::npos ||
           line.starts_with("ERROR") ||
           std::any_of(k_signs.begin(), k_signs.end(), [&](std::string_view sign) {
               return line.find(sign) != std::string_view::npos;
           });
}

void take_bytes(OpenedLog& log, LogBytes& piece)
{
    log.trouble = std::move(piece.trouble);
    if (piece.anew && !piece.note.empty()) {
        log.note = std::move(piece.note);
    }
    log.behind = log.behind ? !(piece.anew && log.follow) : would_take_away(log, piece);
    if (log.behind) {
        return; // the times belong to the lines that are not shown
    }
    take_times(log, piece);
    if (piece.anew) {
        log.text = LogText();
        log.skipped = log.bytes = piece.skipped;
        log.top = log.top_row = 0;
    }
    const std::size_t gone = log.text.gone();
    log.text.feed(piece.bytes);
    log.bytes += piece.bytes.size();
    log.top -= std::min(log.top, log.text.gone() - gone);
}

} // namespace gpuq::tui
