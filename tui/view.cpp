// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/view.h"

#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/base/typed_text.h"
#include "tui/board_view.h"
#include "tui/change.h"
#include "tui/comparison_view.h"
#include "tui/form.h"
#include "tui/gpu_panel.h"
#include "tui/keys.h"
#include "tui/layout.h"
#include "tui/log_view.h"
#include "tui/lower_panel.h"
#include "tui/run_panel.h"
#include "tui/runs_panel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::tui {
namespace {

/// Rows below which a tiny screen has no list.
constexpr int k_rows_for_list = 5;
constexpr int k_columns_for_clock = 100;
/// Less room for the answer is left by nothing beside it.
constexpr int k_least_answer = 20;
/// `+2` and the border before it.
constexpr int k_count_of_toasts = 3;

/// Draws one frame of one model. An object only so that its parts need not pass both around.
class View {
public:
    explicit View(const Model& model)
        : m_model(model)
        , m_areas(areas_of(model))
        , m_canvas(model.size.rows, model.size.columns)
    {
    }

    Canvas draw()
    {
        if (m_model.help) {
            draw_help();
        } else if (m_areas.tiny) {
            draw_tiny();
        } else {
            draw_status();
            draw_panels();
            if (m_model.commands.form) {
                draw_form(m_canvas, {1, 0, rows() - 2, columns()}, m_model);
            }
            draw_toasts();
        }
        draw_bottom();
        return std::move(m_canvas);
    }

private:
    int rows() const { return m_canvas.rows(); }
    int columns() const { return m_canvas.columns(); }
    const Picture& picture() const { return m_model.picture; }

    void put(int row, std::string_view text, const Style& style = {})
    {
        m_canvas.put(row, 0, clipped(sanitised(text), static_cast<std::size_t>(columns())), style);
    }

    /// The age of Slurm's last response and the time, the longest form for which `column` leaves
    /// room; empty if none fits.
    std::string age_for(int column) const
    {
        std::vector<std::string> forms = {"asking Slurm", "asking"};
        if (picture().slurm_at) {
            const auto seconds =
                std::chrono::floor<std::chrono::seconds>(m_model.now - *picture().slurm_at);
            const std::string age = describe(std::max(seconds, std::chrono::seconds(0)));
            forms = {fmt::format("Slurm {} ago", age), age};
        }
        if (columns() >= k_columns_for_clock) {
            forms.front() += "  " + moment_text(m_model.now, m_model.now);
        }
        for (std::string& form : forms) {
            if (column + k_least_answer < columns() - static_cast<int>(cells(form))) {
                return std::move(form);
            }
        }
        return "";
    }

    /// Why there is nothing new, or whether a GPU is free, the longest form that fits.
    std::string answer_for(int room) const
    {
        std::string answer = picture().trouble.empty() ? picture().answer : picture().trouble;
        for (const std::string& shorter : picture().short_answers) {
            const bool fits = cells(sanitised(answer)) <= static_cast<std::size_t>(room);
            answer = fits || !picture().trouble.empty() ? answer : shorter;
        }
        return answer;
    }

    /// The cluster and its free GPUs, or why that is not known; on the right the time and the age
    /// of the data.
    void draw_status()
    {
        const bool is_troubled = !picture().trouble.empty();
        const std::string cluster = sanitised(picture().cluster);
        int column = m_canvas.put(
            0, 0, Line{{"gpuq ", bold()}, {cluster.empty() ? "" : cluster + "  ", dim()}},
            columns());
        Style style = is_troubled ? coloured(k_red) : Style{};
        style.bold = true;
        const std::string right = age_for(column);
        const int begin = columns() - static_cast<int>(cells(right));
        const int room = std::max((right.empty() ? columns() : begin - 2) - column, 0);
        m_canvas.put(0, column,
                     clipped(sanitised(answer_for(room)), static_cast<std::size_t>(room)), style);
        m_canvas.put(0, begin, right, dim());
    }

    void draw_panels()
    {
        if (m_model.comparison) {
            return draw_comparison(m_canvas, m_model);
        }
        if (m_areas.gpus.height > 0) {
            draw_gpus(m_canvas, m_areas.gpus, m_model);
        }
        if (m_areas.runs.height > 0) {
            draw_runs(m_canvas, m_areas.runs, m_model);
        }
        if (m_areas.run.height > 0) {
            draw_run(m_canvas, m_areas.run, m_model);
        }
        if (m_areas.lower.height > 0) {
            draw_lower(m_canvas, m_areas.lower, m_model);
        }
    }

    /// For a screen so small that only the most important data fits.
    void draw_tiny()
    {
        const RunRow* const run = selected_run(m_model);
        const std::string selected = run == nullptr || run->facts.empty()
                                         ? ""
                                         : fmt::format("{}: {}", run->id, run->facts.front());
        const std::string answer = !m_model.has_picture ? "asking Slurm" : answer_for(columns());
        if (m_model.log) {
            return draw_log(m_canvas, {0, 0, std::max(rows() - 1, 1), columns()}, *m_model.log,
                            m_model.found);
        }
        if (rows() > 2 && m_model.panels.focus == Panel::run && shows_board(m_model)) {
            return draw_board(m_canvas, {0, 0, rows() - 1, columns()}, m_model);
        }
        if (rows() <= 2) {
            return put(0, selected.empty() ? answer : selected);
        }
        put(0, answer);
        if (rows() < k_rows_for_list) {
            return put(1, selected);
        }
        draw_runs(m_canvas, {1, 0, rows() - 2, columns()}, m_model);
    }

    /// On the lowest border, where they hide no data: the newest on the right, then the older ones
    /// that fit, and the number of the others.
    void draw_toasts()
    {
        const int row = rows() - 2;
        int end = columns() - 1;
        std::size_t left = m_model.toasts.size();
        for (auto toast = m_model.toasts.rbegin(); toast != m_model.toasts.rend(); ++toast) {
            const std::string text =
                fmt::format(" {} {} ", glyph(toast->mark, m_model.theme), sanitised(toast->text));
            const int room = end - 1 - (left > 1 ? k_count_of_toasts : 0);
            const int width = std::min(static_cast<int>(cells(text)), room);
            if (width < static_cast<int>(cells(text)) && left < m_model.toasts.size()) {
                break;
            }
            Style style = style_of(toast->mark);
            style.reverse = true;
            m_canvas.put(row, end - width, clipped(text, static_cast<std::size_t>(width)), style);
            end -= width + 1;
            --left;
        }
        if (left > 0) {
            m_canvas.put(row, end - k_count_of_toasts + 1, fmt::format("+{}", left), bold());
        }
    }

    std::vector<const KeyRow*> keys_here() const
    {
        std::vector<const KeyRow*> keys;
        const unsigned place = where(m_model);
        for (const KeyRow& key : k_keys) {
            if ((key.where & place) != 0U) {
                keys.push_back(&key);
            }
        }
        return keys;
    }

    void draw_help()
    {
        const char* const name = where(m_model) == k_in_gpus         ? "GPUs"
                                 : where(m_model) == k_in_runs       ? "Runs"
                                 : (where(m_model) & k_in_logs) != 0 ? "Log"
                                 : where(m_model) == k_in_board      ? "Sweep"
                                 : where(m_model) == k_in_curves     ? "Curves"
                                 : where(m_model) == k_in_comparison ? "Compare"
                                                                     : "Run";
        put(0, fmt::format("keys of gpuq top: {}", name), bold());
        const auto keys = keys_here();
        const auto first = static_cast<std::size_t>(*m_model.help);
        const auto shown = static_cast<std::size_t>(rows_of_help(rows()));
        for (std::size_t i = 0; i < shown && first + i < keys.size(); ++i) {
            put(1 + static_cast<int>(i),
                fmt::format("{:<16} {}", keys[first + i]->keys, keys[first + i]->does));
        }
    }

    bool has_more_help() const
    {
        return *m_model.help + rows_of_help(rows()) < static_cast<int>(keys_here().size());
    }

    /// The line at the bottom: a question, the line being typed, the last command's output, or the
    /// keys.
    void draw_bottom()
    {
        const int row = rows() - 1;
        const auto& form = m_model.commands.form;
        if (row == 0 && !m_model.question && !m_model.prompt && !form) {
            return;
        }
        blank(row);
        if (m_model.question) {
            return draw_question(row);
        }
        if (m_model.prompt) {
            const Prompt& prompt = *m_model.prompt;
            draw_message(prompt.proposals.empty()
                             ? prompt.answer
                             : Done{fmt::format("{}", fmt::join(prompt.proposals, "  ")), false},
                         row - 1);
            m_canvas.put(row, 0, typed_line(prompt.label, prompt, columns()), columns());
            return;
        }
        if (form && m_areas.tiny) {
            draw_message(form_message(*form), row - 1);
            m_canvas.put(row, 0, form_line(*form, columns()), columns());
            return;
        }
        if (!m_model.answer.message.empty()) {
            return draw_message(m_model.answer, row);
        }
        if (m_model.help) {
            return put(row, has_more_help() ? "any key: more; q: back" : "any key: back", dim());
        }
        draw_keys(row);
    }

    /// As many as fit: those for help and for leaving are the last to be dropped.
    void draw_keys(int row)
    {
        std::vector<std::string_view> keys;
        std::size_t kept = 0; // number of them never dropped
        for (const KeyRow* const key : keys_here()) {
            if (!key->short_form.empty()) {
                keys.push_back(key->short_form);
                kept = kept > 0 || key->keys == "?" ? kept + 1 : 0;
            }
        }
        const std::size_t running = m_model.commands.running;
        Line line = line_of(running == 0   ? ""
                            : running == 1 ? "1 command running  "
                                           : fmt::format("{} commands running  ", running),
                            coloured(k_yellow));
        const auto width = [&] {
            return cells(text_of(line)) + cells(fmt::format("{}", fmt::join(keys, "  ")));
        };
        while (keys.size() > kept && width() > static_cast<std::size_t>(columns())) {
            keys.erase(keys.end() - static_cast<std::ptrdiff_t>(kept) - 1);
        }
        for (const std::string_view key : keys) {
            const std::size_t end = key.find_last_of(' ');
            line.push_back({std::string(key.substr(0, end)), bold()});
            line.push_back({std::string(key.substr(end)) + "  ", dim()});
        }
        m_canvas.put(row, 0, line, columns());
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
                 broken(rest.substr(0, end), static_cast<std::size_t>(columns()))) {
                lines.push_back({{std::move(part), done.failed ? coloured(k_red) : Style{}}});
            }
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        lines.resize(std::min(lines.size(), most_lines()));
        draw_above(lines, last);
    }

    /// Its end, which has the keys, is always visible.
    void draw_question(int last)
    {
        std::vector<Line> lines;
        for (std::string& part :
             broken(m_model.question->text + " y/N", static_cast<std::size_t>(columns()))) {
            lines.push_back({{std::move(part), bold()}});
        }
        if (lines.size() > most_lines()) {
            lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(most_lines()) - 1,
                        lines.end() - 1);
        }
        draw_above(lines, last);
    }

    std::size_t most_lines() const { return static_cast<std::size_t>(std::max(rows() / 2, 1)); }

    /// Over the content, down to the row `last`.
    void draw_above(const std::vector<Line>& lines, int last)
    {
        int row = last + 1 - static_cast<int>(lines.size());
        for (const Line& line : lines) {
            if (row >= 0) {
                blank(row);
                m_canvas.put(row, 0, line, columns());
            }
            ++row;
        }
    }

    const Model& m_model;
    Areas m_areas;
    Canvas m_canvas;
};

} // namespace

Canvas view(const Model& model)
{
    return View(model).draw();
}

} // namespace gpuq::tui
