// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/grants_text.h"

#include "ports/accounting.h"
#include "report/csv.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using report::Column;
using report::Json;
using Seconds = std::optional<std::chrono::seconds>;

/// A row of the table and of the CSV.
struct Row {
    std::string account;
    std::string holder;
    Seconds granted, used, left;
};

Seconds left_of(const GpuGrant& limit)
{
    return limit.used ? Seconds(std::max<std::chrono::seconds>(limit.granted - *limit.used, 0s))
                      : std::nullopt;
}

std::vector<Row> rows_of(const GrantsLeft& grants)
{
    std::vector<Row> rows;
    for (const AccountGrants& one : grants.accounts) {
        for (const GpuGrant& limit : one.limits) {
            rows.push_back({one.account, limit.holder, limit.granted, limit.used, left_of(limit)});
        }
        if (!one.complete) {
            rows.push_back({one.account, "not shown", {}, {}, {}});
        } else if (one.limits.empty()) {
            rows.push_back({one.account, "no limit", {}, {}, {}});
        }
    }
    return rows;
}

std::optional<double> hours(const Seconds& time)
{
    return time ? std::optional(static_cast<double>(time->count()) / 3600) : std::nullopt;
}

/// `unknown`: the text for an unknown value.
std::string hours_text(const Seconds& time, const char* unknown)
{
    return time ? fmt::format("{:.2f}", *hours(time)) : unknown;
}

std::string seconds_text(const Seconds& time)
{
    return time ? std::to_string(time->count()) : "";
}

Json limit_json(const GpuGrant& limit)
{
    return Json::object({{"holder", limit.holder},
                         {"granted_gpu_hours", hours(limit.granted)},
                         {"used_gpu_hours", hours(limit.used)},
                         {"left_gpu_hours", hours(left_of(limit))}});
}

} // namespace

report::Table grants_table(const GrantsLeft& grants)
{
    report::Table table;
    table.columns = {{"account", "ACCOUNT"},
                     {"limit", "LIMIT OF"},
                     {"granted", "GRANTED", Column::Align::right},
                     {"used", "USED", Column::Align::right},
                     {"left", "LEFT", Column::Align::right}};
    for (const Row& row : rows_of(grants)) {
        const char* const unknown = row.granted ? "?" : "-";
        table.rows.push_back({row.account, row.holder, hours_text(row.granted, unknown),
                              hours_text(row.used, unknown), hours_text(row.left, unknown)});
    }
    return table;
}

std::string grants_csv(const GrantsLeft& grants)
{
    std::string text = "account,limit,granted_gpu_seconds,used_gpu_seconds,left_gpu_seconds\r\n";
    for (const Row& row : rows_of(grants)) {
        text += fmt::format("{},{},{},{},{}\r\n", report::csv_name(sanitised(row.account)),
                            report::csv_name(sanitised(row.holder)), seconds_text(row.granted),
                            seconds_text(row.used), seconds_text(row.left));
    }
    return text;
}

Json::Members grants_document(const GrantsLeft& grants)
{
    Json::Elements accounts;
    for (const AccountGrants& one : grants.accounts) {
        Json::Elements limits;
        for (const GpuGrant& limit : one.limits) {
            limits.push_back(limit_json(limit));
        }
        accounts.push_back(Json::object({{"account", one.account},
                                         {"complete", one.complete},
                                         {"limits", Json::array(std::move(limits))}}));
    }
    return {{"user", grants.user}, {"accounts", Json::array(std::move(accounts))}};
}

} // namespace gpuq::cli
