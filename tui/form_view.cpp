// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/form.h"

#include "core/strings.h"
#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tui/base/typed_text.h"
#include "tui/layout.h"
#include "tui/run_panel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

namespace gpuq::tui {
namespace {

constexpr int k_widest = 100, k_label = 11;
constexpr int k_border = 2;
constexpr std::chrono::seconds k_fresh{10};
/// Rows for the description of the run, below a line; on a small screen without the line, and as
/// many as it needs if that leaves some for fields.
constexpr int k_answer = 6, k_least_answer = 2, k_least_fields = 3;

/// Shown in an empty field.
std::string hint_of(const Form& form, const FormRow& row)
{
    if (!form.key_of_run.empty() && form.before.empty()) {
        return "as before";
    }
    const auto kept = form.before.find(std::string(row.option));
    return kept == form.before.end() ? std::string(row.hint)
                                     : "as before: " + sanitised(kept->second);
}

/// A field and its value.
Line field_line(const Form& form, std::size_t field, int columns)
{
    const FormRow& row = k_form[field];
    const TypedText& text = form.fields[field];
    const bool has_keys = field == form.at;
    const int room = std::max(columns - k_label, 1);
    Line value = has_keys ? typed_line("", text, room)
                          : line_of(clipped(sanitised(text.typed), static_cast<std::size_t>(room)));
    if (text.typed.empty()) {
        const std::string hint = fmt::format("{}{}", has_keys ? " " : "", hint_of(form, row));
        const std::size_t left = static_cast<std::size_t>(room) - cells(text_of(value));
        value.push_back({clipped(hint, left), dim()});
    }
    Style style = has_keys ? coloured(k_cyan) : Style{};
    style.bold = has_keys;
    Line line{{fmt::format("{:<{}}", row.label, k_label), style}};
    line.insert(line.end(), value.begin(), value.end());
    return line;
}

std::vector<Line> message_lines(const Form& form, int columns)
{
    const Done done = form_message(form);
    const Style style = done.failed ? coloured(k_red) : Style{};
    std::vector<Line> lines;
    for (const std::string_view line : split(done.message, "\n")) {
        for (std::string& part : broken(line, static_cast<std::size_t>(std::max(columns, 1)))) {
            lines.push_back(line_of(std::move(part), style));
        }
    }
    return lines;
}

int rows_for_answer(int rows, int wanted)
{
    const int most = std::max(rows - k_least_fields, std::min(k_least_answer, rows - 1));
    return std::max(rows - static_cast<int>(k_form.size()),
                    std::min(std::max(wanted, k_least_answer), most));
}

void blank(Canvas& canvas, const Rect& area)
{
    for (int row = area.top; row <= area.bottom(); ++row) {
        canvas.put(row, area.left, std::string(static_cast<std::size_t>(area.width), ' '));
    }
}

/// In the first row of an area, with a text at its right end.
void draw_rule(Canvas& canvas, const Rect& area, const std::string& text, const Theme& theme)
{
    for (int column = 0; column < area.width; ++column) {
        canvas.put(area.top, area.left + column, theme.ascii ? "-" : "─", dim());
    }
    canvas.put(area.top, area.left + area.width - static_cast<int>(cells(text)), text, dim());
}

/// How old the answer is: policy and free GPUs may be different now.
std::string age_text(const Form& form, Time now)
{
    const auto age = std::chrono::floor<std::chrono::seconds>(now - form.answered_at);
    return form.answer.message.empty() || age < k_fresh
               ? ""
               : fmt::format(" {} ago, F5 asks again ", describe(age));
}

} // namespace

Done form_message(const Form& form)
{
    if (!form.proposals.empty()) {
        return {fmt::format("{}", fmt::join(form.proposals, "  ")), false};
    }
    const bool is_asking = form.answer.message.empty() && !form.fields[0].typed.empty();
    return is_asking ? Done{"...", false} : form.answer;
}

Line form_line(const Form& form, int columns)
{
    return typed_line(fmt::format("{}: ", k_form[form.at].label), form.fields[form.at], columns);
}

void draw_form(Canvas& canvas, const Rect& area, const Model& model)
{
    const Form& form = *model.commands.form;
    const Theme& theme = model.theme;
    const int all = static_cast<int>(k_form.size());
    const int width = std::min(area.width, k_widest);
    const int height = std::min(area.height, all + k_answer + k_border);
    const Rect panel{area.bottom() - height + 1, area.left + (area.width - width) / 2, height,
                     width};
    blank(canvas, panel);
    draw_frame(canvas, panel, line_of(sanitised(form.title), bold()), {}, true, theme);
    const Rect inner = inside(panel);
    const std::vector<Line> message = message_lines(form, inner.width);
    const int answer = rows_for_answer(inner.height, static_cast<int>(message.size()));
    const int shown = inner.height - answer;
    const int first = std::max(static_cast<int>(form.at) - shown + 1, 0);
    for (int i = 0; i < shown; ++i) {
        canvas.put(inner.top + i, inner.left,
                   field_line(form, static_cast<std::size_t>(first + i), inner.width), inner.width);
    }
    Rect rest{inner.top + shown, inner.left, answer, inner.width};
    if (answer > k_least_answer && shown == all) {
        draw_rule(canvas, rest, age_text(form, model.now), theme);
        ++rest.top;
        --rest.height;
    }
    canvas.put_lines(rest, message, 0);
}

} // namespace gpuq::tui
