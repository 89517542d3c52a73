// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/view.h"

#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/curve.h"
#include "tui/keys.h"
#include "tui/update.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace gpuq::tui {
namespace {

constexpr int k_smallest_rows = 10, k_smallest_columns = 40;
constexpr int k_curve_rows = 4, k_least_curve_rows = 3, k_most_curve_rows = 12;
constexpr int k_least_facts = 4;
/// Rows of the list, with its header, while an active run needs the space.
constexpr int k_least_runs = 4;
constexpr int k_rows_for_runs = 5;
constexpr int k_narrowest_curve = 30;
constexpr int k_tall = 32;
/// Rows above the table of GPUs.
constexpr int k_head = 2;

constexpr std::uint8_t k_red = 1, k_green = 2, k_yellow = 3;

Style bold()
{
    Style style;
    style.bold = true;
    return style;
}

Style dim()
{
    Style style;
    style.dim = true;
    return style;
}

Style coloured(std::uint8_t colour)
{
    Style style;
    style.fg = colour;
    return style;
}

Style marked()
{
    Style style;
    style.reverse = true;
    return style;
}

Style style_of(report::Cell::Tone tone)
{
    using Tone = report::Cell::Tone;
    switch (tone) {
    case Tone::good:
        return coloured(k_green);
    case Tone::warning:
        return coloured(k_yellow);
    case Tone::bad:
        return coloured(k_red);
    case Tone::dim:
        return dim();
    case Tone::title:
        return bold();
    case Tone::plain:
        break;
    }
    return {};
}

/// The lines of a table, its header first.
std::vector<Line> lines_of(const report::Table& table, int columns)
{
    report::TableStyle table_style;
    table_style.width = static_cast<std::size_t>(columns);
    const auto shown = report::only(table, "");
    std::vector<Line> lines;
    for (const report::TableLine& parts : report::lines_of(shown ? *shown : table, table_style)) {
        Line& line = lines.emplace_back();
        for (const report::Cell& part : parts) {
            line.push_back({part.text, style_of(part.tone)});
        }
    }
    return lines;
}

/// `49 kB`, `7.0 MB`, `123 MB`.
std::string size_text(std::uint64_t bytes)
{
    const double megabytes = static_cast<double>(bytes) / 1e6;
    return bytes < 1'000'000  ? fmt::format("{} kB", bytes / 1000)
           : megabytes < 9.95 ? fmt::format("{:.1f} MB", megabytes)
                              : fmt::format("{:.0f} MB", megabytes);
}

/// Indentation of continuation lines.
constexpr std::string_view k_indent = "  ";

/// `text`, sanitised, in lines of at most `columns` cells, broken at blanks if there are any.
std::vector<std::string> broken(std::string_view text, std::size_t columns)
{
    std::vector<std::string> lines;
    std::string line;
    std::size_t used = 0;
    std::size_t blank = std::string::npos; // the last blank in `line`
    while (!text.empty()) {
        const std::string_view glyph = take_glyph(text);
        if (used + cells(glyph) > columns && used > k_indent.size()) {
            const std::size_t end = glyph == " " ? line.size() : std::min(blank, line.size());
            const std::string rest = line.substr(std::min(end + 1, line.size()));
            lines.push_back(line.substr(0, end));
            line = std::string(k_indent) + rest;
            used = cells(line);
            blank = std::string::npos;
            if (rest.empty() && glyph == " ") {
                continue;
            }
        }
        if (glyph == " " && used > k_indent.size()) {
            blank = line.size();
        }
        line += glyph;
        used += cells(glyph);
    }
    lines.push_back(line);
    return lines;
}

/// The rows and lines that the parts of one frame of a model get.
class Layout {
public:
    /// The list of runs, its header included.
    struct Runs {
        int top = 0, height = 0;
    };

    explicit Layout(const Model& model)
        : m_model(model)
    {
    }

    int rows() const { return std::max(m_model.size.rows, 1); }
    int columns() const { return std::max(m_model.size.columns, 1); }
    bool is_small() const { return rows() < k_smallest_rows || columns() < k_smallest_columns; }

    /// Lines of the table of GPUs, its header included, that are shown at most.
    int most_gpus() const { return m_model.printed ? rows() : std::max(2, rows() / 4); }

    Runs runs() const
    {
        if (is_small()) {
            return {1, rows() < k_rows_for_runs ? 0 : rows() - 2};
        }
        const int gpus = static_cast<int>(m_model.picture->gpus.rows.size()) + 1;
        const int row =
            k_head + std::min(gpus, most_gpus() + 1); // one states how many are not shown
        const int last = last_row();
        const int share = m_model.printed ? rows() : (last - row) / 2 + 1;
        const int wanted = std::max(3, std::min(share, run_lines() + 1));
        const int height = std::clamp(last - row - 1 - detail_lines(), least_runs(wanted), wanted);
        return {row + 1, std::min(height, last - row)};
    }

    std::size_t first_row() const
    {
        const auto& all = m_model.picture->rows;
        const auto shown = static_cast<std::size_t>(std::max(runs().height - 1, 1));
        const RunRow* run = selected_run(m_model);
        const std::size_t at = run == nullptr ? 0 : static_cast<std::size_t>(run - all.data());
        const std::size_t last_first = all.size() > shown ? all.size() - shown : 0;
        return std::max(std::min({m_model.first_row, last_first, at}),
                        at + 1 > shown ? at + 1 - shown : 0);
    }

    int last_row() const { return rows() - 2; }

    const Detail* detail() const
    {
        const RunRow* run = selected_run(m_model);
        return run != nullptr && m_model.detail && m_model.detail->key == run->key
                   ? &*m_model.detail
                   : nullptr;
    }

    /// The details, which change most, directly follow the first fact.
    std::vector<std::string> facts_of(const RunRow& run) const
    {
        std::vector<std::string> facts = run.facts;
        if (const Detail* more = detail()) {
            facts.insert(facts.begin() + (facts.empty() ? 0 : 1), more->facts.begin(),
                         more->facts.end());
        }
        return facts;
    }

    int rows_for_curves() const
    {
        return detail() == nullptr || detail()->curves.empty() ? 0
               : rows() >= k_tall                              ? k_curve_rows
                                                               : k_least_curve_rows;
    }

    std::vector<std::string> folded_facts(const std::vector<std::string>& facts) const
    {
        std::vector<std::string> lines;
        for (const std::string& fact : facts) {
            const auto parts = broken(sanitised(fact), static_cast<std::size_t>(columns()));
            lines.insert(lines.end(), parts.begin(), parts.end());
        }
        return lines;
    }

protected:
    const Model& m_model;

private:
    /// Runs that have ended make space for the details of one that is active.
    int least_runs(int wanted) const
    {
        const RunRow* run = selected_run(m_model);
        if (run == nullptr || !run->active) {
            return wanted;
        }
        const auto& runs = m_model.picture->rows;
        const auto alive =
            std::count_if(runs.begin(), runs.end(), [](const RunRow& one) { return one.active; });
        return std::min(wanted, std::max(k_least_runs, static_cast<int>(alive) + 1));
    }

    /// The number of lines that the details need.
    int detail_lines() const
    {
        const RunRow* run = selected_run(m_model);
        return run == nullptr
                   ? 0
                   : 1 + (run->part ? 1 : 0) +
                         static_cast<int>(folded_facts(facts_of(*run)).size()) + rows_for_curves();
    }

    int run_lines() const { return static_cast<int>(m_model.picture->rows.size()) + 1; }
};

/// Draws one frame of one model. An object only so that its parts need not pass both around.
class View : private Layout {
public:
    explicit View(const Model& model)
        : Layout(model)
        , m_canvas(model.size.rows, model.size.columns)
    {
    }

    Canvas draw()
    {
        if (m_model.help) {
            draw_help();
        } else if (m_model.log) {
            draw_log(*m_model.log);
        } else if (is_small()) {
            draw_small();
        } else {
            draw_lists();
        }
        if (!m_model.printed) {
            draw_bottom();
        }
        return std::move(m_canvas);
    }

private:
    void put(int row, std::string_view text, const Style& style = {})
    {
        m_canvas.put(row, 0, clipped(sanitised(text), static_cast<std::size_t>(columns())), style);
    }

    std::string age() const
    {
        if (!m_model.picture || !m_model.picture->slurm_at) {
            return "asking Slurm";
        }
        const auto seconds =
            std::chrono::floor<std::chrono::seconds>(m_model.now - *m_model.picture->slurm_at);
        return fmt::format("Slurm {} ago", describe(std::max(seconds, std::chrono::seconds(0))));
    }

    void draw_head()
    {
        const std::string where = m_model.picture ? m_model.picture->cluster : "";
        std::string head = fmt::format("gpuq top  {}  {}  {}", where,
                                       moment_text(m_model.now, m_model.now), age());
        put(0, head, bold());
        if (m_model.picture && !m_model.picture->trouble.empty()) {
            put(1, m_model.picture->trouble, coloured(k_red));
        } else if (m_model.picture) {
            put(1, m_model.picture->answer);
        }
    }

    void draw_lists()
    {
        draw_head();
        if (!m_model.picture) {
            return;
        }
        const std::vector<Line> gpus = lines_of(m_model.picture->gpus, columns());
        const int count = static_cast<int>(gpus.size());
        for (int i = 0; i < std::min(most_gpus(), count); ++i) {
            m_canvas.put(k_head + i, 0, gpus[static_cast<std::size_t>(i)], columns());
        }
        if (count > most_gpus()) {
            put(k_head + most_gpus(), fmt::format("{} more: gpuq free", count - most_gpus()),
                dim());
        }
        draw_runs(runs());
        draw_details(runs().top + runs().height + 1, last_row());
    }

    void draw_runs(const Runs& area)
    {
        if (area.height < 1) {
            return;
        }
        const auto& all = m_model.picture->rows;
        if (all.empty()) {
            const std::string_view key = m_model.printed ? "" : "; + starts one";
            put(area.top, m_model.filter.empty()
                              ? fmt::format("no runs, and none ended within a day{}", key)
                              : fmt::format("no run has '{}' in its line; Esc: all",
                                            sanitised(m_model.filter)));
            return;
        }
        const std::vector<Line> lines = lines_of(m_model.picture->runs, columns());
        m_canvas.put(area.top, 0, lines.front(), columns());
        const auto shown = static_cast<std::size_t>(std::max(area.height - 1, 1));
        const std::size_t first = first_row();
        if (shown < all.size() || !m_model.filter.empty()) {
            show_position(area.top, cells(text_of(lines.front())), first, shown);
        }
        for (std::size_t i = 0; i < shown && first + i < all.size(); ++i) {
            draw_run(area.top + 1 + static_cast<int>(i), lines, first + i);
        }
    }

    /// Texts, from long to short, for a list that continues or is filtered.
    std::vector<std::string> parts_of_list(std::size_t first, std::size_t shown) const
    {
        const std::size_t count = m_model.picture->rows.size();
        if (!m_model.filter.empty()) {
            const std::string part = fmt::format(" {} of {}", count, m_model.whole->rows.size());
            return {fmt::format("{} with '{}'; Esc: all", part, sanitised(m_model.filter)),
                    part + "; Esc: all", " filter"};
        }
        return {fmt::format(" {}-{} of {}", first + 1, std::min(first + shown, count), count),
                fmt::format(" +{}", count - shown)};
    }

    /// At the right of the list's header.
    void show_position(int row, std::size_t used, std::size_t first, std::size_t shown)
    {
        const std::vector<std::string> parts = parts_of_list(first, shown);
        auto part = parts.begin();
        while (std::next(part) != parts.end() &&
               used + cells(*part) > static_cast<std::size_t>(columns())) {
            ++part;
        }
        const int begin = std::max(0, columns() - static_cast<int>(cells(*part)));
        // Removes a column title that it would cover in part.
        const bool covers = used > static_cast<std::size_t>(begin);
        for (int at = begin; covers && at > 0 && m_canvas.at(row, at - 1).glyph != " "; --at) {
            m_canvas.put(row, at - 1, " ");
        }
        m_canvas.put(row, begin, *part, bold());
    }

    void draw_run(int row, const std::vector<Line>& lines, std::size_t index)
    {
        const bool is_selected = m_model.picture->rows[index].key == m_model.selected;
        if (index + 1 < lines.size()) {
            m_canvas.put(row, 0, lines[index + 1], columns());
        }
        if (is_selected) {
            m_canvas.tint(row, marked());
        }
    }

    std::string bar(double part, int width) const
    {
        const int full = std::clamp(static_cast<int>(part * width + 0.5), 0, width);
        std::string text = "[";
        for (int i = 0; i < width; ++i) {
            text += i < full ? (m_model.ascii ? "#" : "█") : (m_model.ascii ? "." : "░");
        }
        return text + fmt::format("] {:.0f} % of its time", 100 * std::clamp(part, 0.0, 1.0));
    }

    void draw_details(int row, int last)
    {
        const RunRow* run = selected_run(m_model);
        if (run == nullptr || row > last) {
            return;
        }
        put(row++, fmt::format("run {} ({})", run->id, run->name), bold());
        if (run->part && row <= last) {
            m_canvas.put(row++, 0, bar(*run->part, std::min(40, columns() / 2)));
        }
        const int last_fact =
            std::min(last, std::max(row + k_least_facts - 1, last - rows_for_curves()));
        for (const std::string& line : in_lines(facts_of(*run), last_fact - row + 1)) {
            put(row++, line);
        }
        if (detail() != nullptr) {
            draw_curves(detail()->curves, row, last);
        }
    }

    /// Complete if all of them fit, else the beginning of each; if there are more, the last line
    /// states how many.
    std::vector<std::string> in_lines(const std::vector<std::string>& facts, int room) const
    {
        std::vector<std::string> lines = folded_facts(facts);
        const auto most = static_cast<std::size_t>(std::max(room, 0));
        if (lines.size() > most) {
            lines = facts;
        }
        if (lines.size() > most) {
            const std::size_t shown = most > 0 ? most - 1 : 0;
            const std::size_t gone = lines.size() - shown;
            lines.resize(shown);
            if (most > 0) {
                lines.push_back(
                    fmt::format("+{} lines: v shows all, a taller terminal more", gone));
            }
        }
        return lines;
    }

    /// As wide as possible while each of them has its rows; then as high as possible.
    void draw_curves(const std::vector<Curve>& curves, int row, int last)
    {
        const int count = static_cast<int>(curves.size());
        const int room = last - row + 1;
        if (count == 0 || room < 2) {
            return;
        }
        const int most_beside = std::clamp(columns() / k_narrowest_curve, 1, count);
        int beside = 1;
        const auto lines = [&] { return (count + beside - 1) / beside; };
        while (beside < most_beside && lines() * k_curve_rows > room) {
            ++beside;
        }
        const int width = columns() / beside;
        const int least = std::min(room, k_least_curve_rows);
        const int height = std::clamp(room / lines(), least, k_most_curve_rows);
        for (int i = 0; i < count; ++i) {
            const int top = row + i / beside * height;
            if (top + height - 1 > last) {
                return;
            }
            draw_curve(m_canvas, top, i % beside * width, height, width - 1,
                       curves[static_cast<std::size_t>(i)], m_model.ascii);
        }
    }

    /// For a screen so small that only the most important data fits.
    void draw_small()
    {
        if (!m_model.picture) {
            return put(0, "asking Slurm");
        }
        const RunRow* run = selected_run(m_model);
        if (rows() <= 2) {
            return put(0, run == nullptr || run->facts.empty()
                              ? m_model.picture->answer
                              : fmt::format("{}: {}", run->id, run->facts.front()));
        }
        put(0,
            m_model.picture->trouble.empty() ? m_model.picture->answer : m_model.picture->trouble);
        if (rows() < k_rows_for_runs) {
            return put(1, run == nullptr || run->facts.empty()
                              ? ""
                              : fmt::format("{}: {}", run->id, run->facts.front()));
        }
        draw_runs(runs());
    }

    /// Whether output precedes the part that can be scrolled to.
    static bool is_part(const OpenedLog& log) { return log.skipped > 0 || log.text.gone() > 0; }

    /// A long name is cut in favour of information about the log.
    std::string log_title(const OpenedLog& log) const
    {
        const std::string begin =
            fmt::format("{} of run {}", log.stream == Stream::out ? "stdout" : "stderr", log.id);
        std::string end = log.note.empty() ? "" : fmt::format(" [{}]", log.note);
        end += log.behind && !log.follow ? " [more: G]" : "";
        end += is_part(log) ? fmt::format(", the end of {}; p: all", size_text(log.bytes)) : "";
        const auto used = cells(begin) + cells(sanitised(end)) + std::string_view(" ()").size();
        const auto room =
            static_cast<std::size_t>(columns()) - std::min<std::size_t>(columns(), used);
        const std::string name = room > 0 ? clipped(sanitised(log.name), room) : "";
        return begin + (name.empty() ? "" : fmt::format(" ({})", name)) + end;
    }

    /// Not if one more row would hide the last one of all: no key leads to it. `shown`: two rows
    /// more than the height, if there are as many.
    static bool has_room_above(const std::vector<Line>& shown, const Line& last, int height)
    {
        const int count = static_cast<int>(shown.size());
        const bool ends_empty = count < height + 2 && last.empty(); // needs no row
        return height > 2 && count - (ends_empty ? 1 : 0) != height;
    }

    void draw_log(const OpenedLog& log)
    {
        put(0, log_title(log), bold());
        int top = 1;
        const auto& lines = log.text.lines();
        if (lines.size() == 1 && lines.front().empty()) {
            return put(top, log.trouble.empty() ? "nothing yet" : log.trouble, dim());
        }
        const int height = std::max(rows() - 2, 1);
        std::vector<Line> shown =
            log.follow ? last_lines(lines, log.wrap, height) : lines_from(lines, log, height + 2);
        if (is_part(log) && !log.follow && log.top == 0 && log.top_row == 0 &&
            has_room_above(shown, lines.back(), height)) {
            put(top++, fmt::format("more above: p or gpuq logs {} shows it", log.id), dim());
        }
        shown.resize(std::min(shown.size(), static_cast<std::size_t>(height + 1 - top)));
        for (std::size_t i = 0; i < shown.size(); ++i) {
            const int row = top + static_cast<int>(i);
            m_canvas.put(row, 0, shown[i], columns());
            if (!m_model.found.empty() && is_in(text_of(shown[i]), m_model.found)) {
                m_canvas.tint(row, marked());
            }
        }
    }

    std::vector<Line> folded(const Line& line, bool wrap) const
    {
        return wrap ? tui::folded(line, columns()) : std::vector<Line>{line};
    }

    std::vector<Line> last_lines(const std::deque<Line>& lines, bool wrap, int height) const
    {
        std::vector<Line> shown;
        std::size_t at = lines.size();
        if (at > 1 && lines.back().empty()) {
            --at; // a cursor at the beginning of a line needs no row
        }
        while (at > 0 && static_cast<int>(shown.size()) < height) {
            const std::vector<Line> parts = folded(lines[--at], wrap);
            shown.insert(shown.begin(), parts.begin(), parts.end());
        }
        if (static_cast<int>(shown.size()) > height) {
            shown.erase(shown.begin(), shown.end() - height);
        }
        return shown;
    }

    std::vector<Line> lines_from(const std::deque<Line>& lines, const OpenedLog& log,
                                 int height) const
    {
        std::vector<Line> shown;
        std::size_t at = std::min(log.top, lines.size() - 1);
        std::size_t above = log.top_row;
        for (; at < lines.size() && static_cast<int>(shown.size()) < height; ++at) {
            const std::vector<Line> parts = folded(lines[at], log.wrap);
            above = std::min(above, parts.size() - 1); // the terminal may have become wider
            shown.insert(shown.end(), parts.begin() + static_cast<std::ptrdiff_t>(above),
                         parts.end());
            above = 0;
        }
        shown.resize(std::min(shown.size(), static_cast<std::size_t>(height)));
        return shown;
    }

    void draw_help()
    {
        put(0, "keys of gpuq top", bold());
        const auto first = static_cast<std::size_t>(m_model.help_row);
        const auto shown = static_cast<std::size_t>(rows_of_help(rows()));
        for (std::size_t i = 0; i < shown && first + i < k_keys.size(); ++i) {
            const KeyRow& key = k_keys[first + i];
            put(1 + static_cast<int>(i), fmt::format("{:<14} {}", key.keys, key.does));
        }
    }

    bool has_more_help() const
    {
        return m_model.help_row + rows_of_help(rows()) < static_cast<int>(k_keys.size());
    }

    /// The line at the bottom: a question, the line being typed, the last command's output, or the
    /// keys.
    void draw_bottom()
    {
        const int row = rows() - 1;
        if (row == 0 && !m_model.question && !m_model.prompt) {
            return;
        }
        blank(row);
        if (m_model.question) {
            return put(row, m_model.question->text + " y/N", bold());
        }
        if (m_model.prompt) {
            draw_message(m_model.prompt->answer, row - 1);
            return draw_prompt(row);
        }
        if (!m_model.message.empty()) {
            return draw_message({m_model.message, m_model.failed}, row);
        }
        const char* const help = has_more_help() ? "any key: more; q: back" : "any key: back";
        put(row, m_model.help ? help : keys_that_apply(), dim());
    }

    /// As many as fit: those for help and for leaving are the last to be dropped.
    std::string keys_that_apply() const
    {
        std::vector<std::string_view> keys;
        std::size_t kept = 0; // number of them never dropped
        for (const KeyRow& key : k_keys) {
            if (!key.short_form.empty() && (m_model.log ? key.in_log : key.in_list)) {
                keys.push_back(key.short_form);
                kept = kept > 0 || key.keys == "?" ? kept + 1 : 0;
            }
        }
        const auto text = [&] { return fmt::format("{}", fmt::join(keys, "  ")); };
        while (keys.size() > kept && cells(text()) > static_cast<std::size_t>(columns())) {
            keys.erase(keys.end() - static_cast<std::ptrdiff_t>(kept) - 1);
        }
        return text();
    }

    void blank(int row)
    {
        m_canvas.put(row, 0, std::string(static_cast<std::size_t>(columns()), ' '));
    }

    /// All output of a command, over the content above, unless it is longer than half of the
    /// screen.
    void draw_message(const Done& done, int last)
    {
        std::vector<Line> lines;
        std::string_view rest = done.message;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            for (std::string& part :
                 broken(sanitised(rest.substr(0, end)), static_cast<std::size_t>(columns()))) {
                lines.push_back({{std::move(part), done.failed ? coloured(k_red) : Style{}}});
            }
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        lines.resize(std::min<std::size_t>(lines.size(), std::max(rows() / 2, 1)));
        int row = last + 1 - static_cast<int>(lines.size());
        for (const Line& line : lines) {
            if (row >= 0) {
                blank(row);
                m_canvas.put(row, 0, line, columns());
            }
            ++row;
        }
    }

    /// Keeps the position of the next character in view.
    void draw_prompt(int row)
    {
        const Prompt& prompt = *m_model.prompt;
        const std::string before = sanitised(prompt.label + prompt.typed.substr(0, prompt.cursor));
        const std::string after = sanitised(prompt.typed.substr(prompt.cursor));
        std::string_view rest = after;
        const std::string_view at = take_glyph(rest);
        std::string_view shown = before;
        while (cells(shown) + std::max<std::size_t>(cells(at), 1) >
               static_cast<std::size_t>(columns())) {
            if (shown.empty()) {
                break;
            }
            (void)take_glyph(shown);
        }
        Line line{{std::string(shown) + (at.empty() ? "_" : ""), {}}};
        if (!at.empty()) {
            line.push_back({std::string(at), marked()});
            line.push_back({std::string(rest), {}});
        }
        m_canvas.put(row, 0, line, columns());
    }

    Canvas m_canvas;
};

} // namespace

Canvas view(const Model& model)
{
    return View(model).draw();
}

std::size_t first_row_shown(const Model& model)
{
    return model.picture ? Layout(model).first_row() : 0;
}

} // namespace gpuq::tui
