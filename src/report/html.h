// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/table.h"

#include <chrono>
#include <string>
#include <string_view>

/// Pages for a browser: one file each, without external resources.
namespace gpuq::report {

/// Any text in a form for a page or an attribute in double quotes: sanitised (term/sanitise.h),
/// then `&`, `<`, `>` and quotes as entities.
std::string html_text(std::string_view text);

/// A whole page around `body`, which is HTML; `title` is text. Has the style sheet for everything
/// in this module, light or dark according to the reader's system, and forbids the browser to load
/// or execute anything. The browser loads the page again after `reload`, unless that is 0.
std::string html_page(std::string_view title, const std::string& body,
                      std::chrono::seconds reload = {});

/// The table, its cells as text. The first cell is the header of its row; a row whose first cell
/// begins with blanks belongs to the row above.
std::string html_table(const Table& table, std::string_view caption);

} // namespace gpuq::report
