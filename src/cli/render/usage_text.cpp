// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/usage_text.h"

#include "core/number.h"
#include "core/timestamp.h"
#include "core/walltime.h"
#include "report/csv.h"
#include "report/ending_text.h"
#include "report/html.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <ctime>
#include <optional>
#include <utility>

namespace gpuq::cli {
namespace {

using report::Column;
using report::Json;

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
    return time_from_local(day).value_or(at);
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

std::string wait_text(const std::optional<std::chrono::seconds>& wait)
{
    return wait ? describe(*wait) : "?";
}

std::vector<report::Cell> names_of(const GpuUse& use, const UseRow& row)
{
    std::vector<report::Cell> cells;
    for (std::size_t i = 0; i < row.names.size(); ++i) {
        cells.emplace_back(name_text(use.by[i], row.names[i]));
    }
    return cells;
}

void add_name_columns(report::Table& table, const GpuUse& use)
{
    for (const UseBy by : use.by) {
        std::string title(word(by));
        for (char& c : title) {
            c = static_cast<char>(c - 'a' + 'A');
        }
        table.columns.push_back({std::string(word(by)), title});
    }
}

/// The figures of a row from GPU-HOURS to UNKNOWN.
using Figures = std::array<std::string, 4>;

report::Table table_of(const GpuUse& use, Figures (*figures)(const UseRow&))
{
    report::Table table;
    add_name_columns(table, use);
    for (const auto& [name, title] : {std::pair("jobs", "JOBS"),
                                      {"hours", "GPU-HOURS"},
                                      {"busy", "BUSY"},
                                      {"idle", "IDLE"},
                                      {"unknown", "UNKNOWN"},
                                      {"p50", "WAIT P50"},
                                      {"p95", "WAIT P95"}}) {
        table.columns.push_back({name, title, Column::Align::right});
    }
    const auto add = [&](std::vector<report::Cell> cells, const UseRow& row) {
        cells.emplace_back(std::to_string(row.jobs));
        for (const std::string& figure : figures(row)) {
            cells.emplace_back(figure);
        }
        cells.emplace_back(wait_text(row.wait_p50));
        cells.emplace_back(wait_text(row.wait_p95));
        table.rows.push_back(std::move(cells));
    };
    for (const UseRow& row : use.rows) {
        add(names_of(use, row), row);
    }
    std::vector<report::Cell> total(use.by.size(), report::Cell(""));
    total.front() = report::Cell("all");
    add(std::move(total), use.total);
    return table;
}

/// The table of the page: parts in percent.
report::Table shares_table(const GpuUse& use)
{
    return table_of(use, [](const UseRow& row) {
        const auto share = [&](std::int64_t part) { return percent_text(part, row.gpu_seconds); };
        return Figures{hours_text(hundredths(row.gpu_seconds)), share(row.busy), share(row.idle),
                       share(row.unknown())};
    });
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
    members.emplace_back("wait_p50_seconds", row.wait_p50);
    members.emplace_back("wait_p95_seconds", row.wait_p95);
    return Json::object(std::move(members));
}

} // namespace

std::string percent_text(std::int64_t part, std::int64_t all)
{
    if (all == 0) {
        return "-";
    }
    const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(all);
    return part > 0 && percent < 1      ? "< 1 %"
           : part < all && percent > 99 ? "> 99 %"
                                        : fmt::format("{:.0f} %", percent);
}

Result<Time> parse_moment(std::string_view text, Time now)
{
    if (text == "now") {
        return now;
    }
    if (text == "today") {
        return midnight(now);
    }
    if (const auto time = time_from_local(text)) {
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
    return time_from_local(day).value_or(now);
}

std::string unknown_sizes_text(const GpuUse& use)
{
    if (use.jobs_of_unknown_size == 0) {
        return "";
    }
    const bool is_one = use.jobs_of_unknown_size == 1;
    return fmt::format(
        "{}, so the size of shares is unknown: {} with {} of a GPU count{} as if {} had all of it, "
        "and the GPU-hours are at most these{}",
        use.knows_nodes ? "no node has shares of that kind now" : "slurmctld does not respond",
        counted(static_cast<std::uint64_t>(use.jobs_of_unknown_size), "job"),
        is_one ? "a share" : "shares", is_one ? "s" : "", is_one ? "it" : "they",
        use.knows_nodes ? "" : "; jobs that have started or ended since are not in accounting yet");
}

report::Table usage_table(const GpuUse& use)
{
    return table_of(use, [](const UseRow& row) {
        // Each is the difference of two rounded sums, so that the printed values add up.
        const std::int64_t busy = hundredths(row.busy);
        const std::int64_t known = hundredths(row.busy + row.idle);
        const std::int64_t all = hundredths(row.gpu_seconds);
        return Figures{hours_text(all), hours_text(busy), hours_text(known - busy),
                       hours_text(all - known)};
    });
}

std::string usage_csv(const GpuUse& use)
{
    std::string text;
    for (const UseBy by : use.by) {
        text += fmt::format("{},", word(by));
    }
    text += "jobs,gpu_seconds,busy_gpu_seconds,idle_gpu_seconds,unknown_gpu_seconds,"
            "wait_p50_seconds,wait_p95_seconds\r\n";
    const auto seconds = [](const std::optional<std::chrono::seconds>& wait) {
        return wait ? std::to_string(wait->count()) : "";
    };
    for (const UseRow& row : use.rows) {
        for (const std::string& name : row.names) {
            text += report::csv_name(sanitised(name)) + ",";
        }
        text += fmt::format("{},{},{},{},{},{},{}\r\n", row.jobs, row.gpu_seconds, row.busy,
                            row.idle, row.unknown(), seconds(row.wait_p50), seconds(row.wait_p95));
    }
    return text;
}

std::string usage_page(const GpuUse& use)
{
    std::vector<std::string_view> by;
    for (const UseBy one : use.by) {
        by.push_back(word(one));
    }
    const UseRow& all = use.total;
    const auto figure = [&](std::string_view what, const std::string& value) {
        return fmt::format("<div><dt>{}</dt><dd class=\"now\">{}</dd></div>\n", what,
                           report::html_text(value));
    };
    const std::string unknown = unknown_sizes_text(use);
    const std::string warning =
        unknown.empty() ? "" : fmt::format("<p>{}.</p>\n", report::html_text(unknown));
    const std::string body =
        fmt::format("<h1>GPU use by {}</h1>\n<p class=\"soft\">From {} to {}.</p>\n",
                    fmt::join(by, ", "), moment_text(use.from, Time()),
                    moment_text(use.to, Time())) +
        "<dl class=\"key four\">\n" + figure("GPU-hours", hours_text(hundredths(all.gpu_seconds))) +
        figure("busy", percent_text(all.busy, all.gpu_seconds)) +
        figure("idle", percent_text(all.idle, all.gpu_seconds)) +
        figure("unknown", percent_text(all.unknown(), all.gpu_seconds)) +
        fmt::format("</dl>\n<h2>By {}</h2>\n<div class=\"wide-table\">{}</div>\n",
                    fmt::join(by, ", "),
                    report::html_table(shares_table(use), "Elapsed time times allocated GPUs, and "
                                                          "waits of the jobs for their start.")) +
        warning +
        fmt::format("<footer>\n<p>Unknown: jobs that noted no use of their GPUs. A wait is unknown "
                    "(?) if there are too few jobs.</p>\n<p>Made by gpuq {} usage; see man "
                    "gpuq-usage.</p>\n</footer>\n",
                    GPUQ_VERSION);
    return report::html_page("GPU use", body);
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
    Json::Elements warnings;
    if (const std::string text = unknown_sizes_text(use); !text.empty()) {
        warnings.push_back(
            Json::object({{"code", use.knows_nodes ? "share_size_unknown" : "slurm_unreachable"},
                          {"text", text}}));
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
            {"advice", Json::array(std::move(advice))},
            {"warnings", Json::array(std::move(warnings))}};
}

} // namespace gpuq::cli
