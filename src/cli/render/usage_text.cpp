// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/usage_text.h"

#include "core/walltime.h"
#include "report/csv.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <optional>

namespace gpuq::cli {
namespace {

using report::Column;
using report::Json;

Time time_of(std::tm local)
{
    local.tm_isdst = -1;
    return Time(std::chrono::seconds(std::mktime(&local)));
}

std::tm local(Time at)
{
    const std::time_t seconds =
        std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
    std::tm parts = {};
    localtime_r(&seconds, &parts);
    return parts;
}

Time midnight(Time at)
{
    std::tm day = local(at);
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    return time_of(day);
}

std::optional<Time> calendar_time(const std::string& text)
{
    for (const char* format : {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
        std::tm parts = {};
        const char* const end = strptime(text.c_str(), format, &parts);
        if (end == text.c_str() + text.size()) {
            return time_of(parts);
        }
    }
    return std::nullopt;
}

double hours(std::int64_t seconds)
{
    return static_cast<double>(seconds) / 3600;
}

/// Rounded, to hundredths of an hour.
std::int64_t hundredths(std::int64_t seconds)
{
    return (seconds + 18) / 36;
}

std::string hours_text(std::int64_t hundredths)
{
    return fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
}

Json advice_json(const UseAdvice& advice)
{
    return Json::object({{"code", word(advice.code)},
                         {"jobs", advice.jobs},
                         {"percent", advice.percent},
                         {"text", advice.text}});
}

std::string name_text(UseBy by, const std::string& name)
{
    return name.empty() ? (by == UseBy::model ? "any" : "-") : name;
}

Json row_json(const GpuUse& use, const UseRow& row)
{
    Json::Members members;
    for (std::size_t i = 0; i < row.names.size(); ++i) {
        members.emplace_back(word(use.by[i]), row.names[i].empty() ? Json() : Json(row.names[i]));
    }
    members.emplace_back("jobs", row.jobs);
    members.emplace_back("gpu_seconds", row.gpu_seconds);
    members.emplace_back("gpu_hours", hours(row.gpu_seconds));
    members.emplace_back("busy_gpu_seconds", row.busy);
    members.emplace_back("idle_gpu_seconds", row.idle);
    members.emplace_back("unknown_gpu_seconds", row.unknown());
    return Json::object(std::move(members));
}

} // namespace

Result<Time> parse_moment(std::string_view text, Time now)
{
    if (text == "now") {
        return now;
    }
    if (text == "today") {
        return midnight(now);
    }
    if (const auto time = calendar_time(std::string(text))) {
        return *time;
    }
    if (const auto ago = parse_duration(text)) {
        return now - *ago;
    }
    return fail(Error::Kind::usage,
                fmt::format("'{}' is not a time: 2026-11-01, 2026-11-01T16:40, today, now, or how "
                            "long ago, such as 7d",
                            text));
}

Time begin_of_month(Time now)
{
    std::tm day = local(now);
    day.tm_mday = 1;
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    return time_of(day);
}

report::Table usage_table(const GpuUse& use)
{
    report::Table table;
    for (const UseBy by : use.by) {
        std::string title(word(by));
        for (char& c : title) {
            c = static_cast<char>(c - 'a' + 'A');
        }
        table.columns.push_back({std::string(word(by)), title});
    }
    table.columns.push_back({"jobs", "JOBS", Column::Align::right});
    table.columns.push_back({"hours", "GPU-HOURS", Column::Align::right});
    table.columns.push_back({"busy", "BUSY", Column::Align::right});
    table.columns.push_back({"idle", "IDLE", Column::Align::right});
    table.columns.push_back({"unknown", "UNKNOWN", Column::Align::right});
    const auto add = [&](std::vector<report::Cell> cells, const UseRow& row) {
        cells.emplace_back(std::to_string(row.jobs));
        // Each is the difference of two rounded sums, so that the printed values add up.
        const std::int64_t busy = hundredths(row.busy);
        const std::int64_t known = hundredths(row.busy + row.idle);
        const std::int64_t all = hundredths(row.gpu_seconds);
        for (const std::int64_t part : {all, busy, known - busy, all - known}) {
            cells.emplace_back(hours_text(part));
        }
        table.rows.push_back(std::move(cells));
    };
    for (const UseRow& row : use.rows) {
        std::vector<report::Cell> cells;
        for (std::size_t i = 0; i < row.names.size(); ++i) {
            cells.emplace_back(name_text(use.by[i], row.names[i]));
        }
        add(std::move(cells), row);
    }
    std::vector<report::Cell> last(use.by.size(), report::Cell(""));
    last.front() = report::Cell("all");
    add(std::move(last), use.total);
    return table;
}

std::string usage_csv(const GpuUse& use)
{
    std::string text;
    for (const UseBy by : use.by) {
        text += fmt::format("{},", word(by));
    }
    text += "jobs,gpu_seconds,busy_gpu_seconds,idle_gpu_seconds,unknown_gpu_seconds\r\n";
    for (const UseRow& row : use.rows) {
        for (const std::string& name : row.names) {
            text += report::csv_field(sanitised(name)) + ",";
        }
        text += fmt::format("{},{},{},{},{}\r\n", row.jobs, row.gpu_seconds, row.busy, row.idle,
                            row.unknown());
    }
    return text;
}

Json::Members usage_document(const GpuUse& use)
{
    Json::Elements by;
    for (const UseBy one : use.by) {
        by.emplace_back(word(one));
    }
    Json::Elements rows;
    for (const UseRow& row : use.rows) {
        rows.push_back(row_json(use, row));
    }
    Json::Elements advice;
    for (const UseAdvice& one : use.advice) {
        advice.push_back(advice_json(one));
    }
    return {{"from", use.from},
            {"to", use.to},
            {"by", Json::array(std::move(by))},
            {"rows", Json::array(std::move(rows))},
            {"total", row_json(use, use.total)},
            {"advice", Json::array(std::move(advice))}};
}

} // namespace gpuq::cli
