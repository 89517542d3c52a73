// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/lower_panel.h"

#include "tui/facts_tab.h"
#include "tui/layout.h"
#include "tui/log_view.h"

namespace gpuq::tui {
namespace {

/// Of the panel's width, beside its title.
constexpr int k_around_title = 6;

/// The title of the log is in the upper edge.
Rect area_in(const Rect& panel)
{
    return {panel.top, panel.left + 1, panel.height - 1, panel.width - 2};
}

} // namespace

void draw_lower(Canvas& canvas, const Rect& panel, const Model& model)
{
    if (model.log && !shows_log(model)) {
        draw_frame(canvas, panel, title_of_log(*model.log, panel.width - k_around_title), {}, false,
                   model.theme);
        return draw_log_lines(canvas, area_in(panel), *model.log, model.found);
    }
    draw_frame(canvas, panel, {{"Facts", bold()}}, {}, false, model.theme);
    if (const RunRow* const run = selected_run(model)) {
        draw_facts(canvas, inside(panel), model, *run);
    }
}

Rect area_of_lower_log(const Model& model)
{
    const Rect panel = areas_of(model).lower;
    return panel.height > 0 && model.log && !shows_log(model) ? area_in(panel) : Rect{};
}

} // namespace gpuq::tui
