// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/table.h"

#include <string>
#include <string_view>

/// Pages for a browser: one file each, without anything from elsewhere.
namespace gpuq::report {

/// Any text as a page or an attribute in double quotes may hold it: sanitised (core/sanitise.h),
/// then `&`, `<`, `>` and quotes as entities.
std::string html_text(std::string_view text);

/// A whole page around `body`, which is HTML already; `title` is text. It brings the style sheet
/// for all that this room makes, light or dark as the reader's system is, and forbids the browser
/// to load or to execute anything.
std::string html_page(std::string_view title, const std::string& body);

/// The table, its cells as text. A row is about what its first cell says; one that begins with
/// blanks belongs to the row before.
std::string html_table(const Table& table, std::string_view caption);

} // namespace gpuq::report
