// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/trace_lines.h"

#include "core/number.h"
#include "core/strings.h"
#include "term/sanitise.h"

#include <algorithm>
#include <fmt/format.h>

namespace gpuq::sim {
namespace {

constexpr std::size_t k_longest_line = 64 * 1024;
constexpr std::size_t k_longest_quotation = 40;
constexpr std::uint64_t k_most_seconds = std::uint64_t{100} * 366 * 24 * 3600 * 100;
constexpr std::uint64_t k_most_of_anything = 1'000'000;

std::string quoted(std::string_view text)
{
    return fmt::format("'{}'", sanitised(text.substr(0, k_longest_quotation)));
}

std::string_view without_quotes(std::string_view field)
{
    const bool quotes = field.size() >= 2 && field.front() == '"' && field.back() == '"';
    return quotes ? field.substr(1, field.size() - 2) : field;
}

} // namespace

Error Line::wrong(const std::string& what) const
{
    return fail(Error::Kind::usage, fmt::format("{}:{}: {}", sanitised(m_file), m_number, what));
}

Error Line::wrong_at(std::size_t column, const std::string& what) const
{
    return fail(Error::Kind::usage,
                fmt::format("{}:{}:{}: {}", sanitised(m_file), m_number, column, what));
}

Result<std::optional<Seconds>> Line::seconds(std::string_view text, std::string_view what) const
{
    const std::string_view whole = trimmed(text).substr(0, trimmed(text).find('.'));
    const std::string_view fraction = trimmed(text).substr(whole.size());
    const bool negative = !whole.empty() && whole.front() == '-';
    const auto number = whole_number(negative ? whole.substr(1) : whole);
    if (trimmed(text).empty()) {
        return std::optional<Seconds>{};
    }
    if (!number || *number > k_most_seconds ||
        (!fraction.empty() && fraction != "." && !whole_number(fraction.substr(1)))) {
        return wrong(fmt::format("{} is not a number of seconds: {}", what, quoted(text)));
    }
    return negative ? std::optional<Seconds>{}
                    : std::optional(Seconds{static_cast<std::int64_t>(*number)});
}

Result<int> Line::count(std::string_view text, std::string_view what) const
{
    const auto number = whole_number(trimmed(text));
    if (!number || *number > k_most_of_anything) {
        return wrong(fmt::format("{} is not a number: {}", what, quoted(text)));
    }
    return static_cast<int>(*number);
}

Result<void> each_line(std::string_view text, const std::string& file,
                       const std::function<Result<void>(const Line&, std::string_view)>& take)
{
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!line.empty() && line.back() == '\r') {
            line.remove_suffix(1);
        }
        const Line where(file, number);
        if (line.size() > k_longest_line) {
            return where.wrong(fmt::format("longer than {} bytes", k_longest_line));
        }
        if (!trimmed(line).empty()) {
            TRY(take(where, line));
        }
    }
    return {};
}

Fields split(std::string_view line, char separator)
{
    Fields fields;
    std::size_t begin = 0;
    bool in_quotes = false;
    for (std::size_t i = 0; i <= line.size(); ++i) {
        if (i < line.size() && line[i] == '"' && separator == ',') {
            in_quotes = !in_quotes;
        }
        if (i == line.size() || (line[i] == separator && !in_quotes)) {
            const std::string_view field = line.substr(begin, i - begin);
            fields.push_back(separator == ',' ? without_quotes(trimmed(field)) : field);
            begin = i + 1;
        }
    }
    return fields;
}

Fields split_blanks(std::string_view line)
{
    constexpr std::string_view blanks = " \t";
    Fields fields;
    for (std::size_t i = line.find_first_not_of(blanks); i < line.size();
         i = line.find_first_not_of(blanks, i)) {
        const std::size_t end = std::min(line.find_first_of(blanks, i), line.size());
        fields.push_back(line.substr(i, end - i));
        i = end;
    }
    return fields;
}

Columns::Columns(const Fields& header)
{
    for (const std::string_view name : header) {
        m_names.emplace_back(trimmed(name));
    }
}

bool Columns::has(std::string_view name) const
{
    return std::find(m_names.begin(), m_names.end(), name) != m_names.end();
}

std::string_view Columns::in(const Fields& row, std::string_view name) const
{
    const auto found = std::find(m_names.begin(), m_names.end(), name);
    const auto index = static_cast<std::size_t>(found - m_names.begin());
    return index < row.size() ? trimmed(row[index]) : std::string_view{};
}

Seconds finish(Trace& trace)
{
    std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                     [](const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; });
    const Seconds zero = trace.jobs.empty() ? Seconds{0} : trace.jobs.front().submit;
    for (TraceJob& job : trace.jobs) {
        job.submit -= zero;
        if (job.start) {
            *job.start -= zero;
        }
    }
    return zero;
}

} // namespace gpuq::sim
