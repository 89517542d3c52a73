// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/findings_output.h"

#include "cli/base/message.h"

#include <algorithm>
#include <string>

namespace gpuq::cli {
namespace {

using Level = Finding::Level;
using report::Cell;
using report::Json;

Cell::Tone tone_of(Level level)
{
    switch (level) {
    case Level::ok:
        return Cell::Tone::good;
    case Level::warning:
        return Cell::Tone::warning;
    case Level::problem:
        return Cell::Tone::bad;
    case Level::unknown:
        return Cell::Tone::dim;
    }
    return Cell::Tone::plain;
}

} // namespace

report::Table findings_table(const std::vector<Finding>& findings)
{
    report::Table table;
    table.columns = {{"level", "LEVEL"}, {"check", "CHECK"}, {"what", "WHAT"}};
    for (const Finding& one : findings) {
        const std::string text = one.remedy.empty() ? one.text : one.text + ". " + one.remedy;
        table.rows.push_back(
            {Cell(std::string(word(one.level)), tone_of(one.level)), one.check, as_typed(text)});
    }
    return table;
}

report::Json::Members findings_list(const std::vector<Finding>& findings)
{
    Json::Elements checks;
    for (const Finding& one : findings) {
        checks.push_back(
            Json::object({{"check", one.check},
                          {"level", one.level == Level::unknown ? Json() : Json(word(one.level))},
                          {"text", one.text},
                          {"remedy", one.remedy.empty() ? Json() : Json(one.remedy)}}));
    }
    return {{"checks", Json::array(std::move(checks))},
            {"problems", count_of(findings, Level::problem)},
            {"warnings", count_of(findings, Level::warning)}};
}

std::size_t count_of(const std::vector<Finding>& findings, Level level)
{
    return static_cast<std::size_t>(std::count_if(
        findings.begin(), findings.end(), [&](const Finding& one) { return one.level == level; }));
}

} // namespace gpuq::cli
