// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <array>
#include <cstdint>
#include <string_view>

/// The form that starts a run.
namespace gpuq::tui {

/// A field: an option of `gpuq run`, or the rest of its command line.
struct FormRow {
    enum class Completes : std::uint8_t { nothing, arguments, files, names };
    std::string_view label;
    std::string_view option; ///< empty: the rest of the command line
    std::string_view hint;   ///< shown while the field of a new run is empty
    Completes completes = Completes::nothing;
};

/// In their order on the screen.
inline constexpr std::array<FormRow, k_form_fields> k_form = {{
    {"command", "", "[options of gpuq run] PROGRAM [ARG...]", FormRow::Completes::arguments},
    {"GPUs", "--gpus", "1, k80:2, 16G+ (that memory); default: 1"},
    {"time", "--time", "90 (minutes), 2h, 1-12; default: that of the queue"},
    {"queue", "--queue", "default: follows from the time", FormRow::Completes::names},
    {"name", "--name", "default: the program's"},
    {"directory", "--chdir", "default: the current one", FormRow::Completes::files},
    {"venv", "--venv", "a Python virtual environment", FormRow::Completes::files},
    {"conda", "--conda", "a conda environment", FormRow::Completes::names},
}};

/// Draws the form over the lower part of an area.
void draw_form(Canvas& canvas, const Rect& area, const Model& model);
/// Its present field, for a screen that has one line for it.
Line form_line(const Form& form, int columns);
/// The proposals of completion, else the description of the run.
Done form_message(const Form& form);

} // namespace gpuq::tui
