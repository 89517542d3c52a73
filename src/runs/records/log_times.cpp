// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/log_times.h"

#include "core/layout.h"
#include "core/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace gpuq {
namespace {

using std::chrono::milliseconds;

/// Longer lines are not valid.
constexpr std::size_t k_longest = 64;
/// Beyond this year 9999 or so, a number is no time.
constexpr std::uint64_t k_latest = 253'402'300'799'999;

/// The number before the next blank; removes both.
std::optional<std::uint64_t> take_number(std::string_view& line)
{
    const std::size_t end = std::min(line.find(' '), line.size());
    const auto number = whole_number(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
    return number;
}

} // namespace

std::string to_line(const LogTime& time)
{
    const auto since = std::chrono::duration_cast<milliseconds>(time.at.time_since_epoch());
    return fmt::format("{} {} {}\n", since.count(), time.sizes[0], time.sizes[1]);
}

std::optional<LogTime> parse_log_time(std::string_view line)
{
    const auto at = take_number(line);
    const auto out = take_number(line);
    const auto err = take_number(line);
    if (!at || *at > k_latest || !out || !err || !line.empty()) {
        return std::nullopt;
    }
    return LogTime{Time(milliseconds(*at)), {*out, *err}};
}

LogTimes::LogTimes(Store& store, const RunKey& key, LinkNumber link, Stream stream,
                   std::uint64_t window)
    : m_store(store)
    , m_path(layout::times(key, link))
    , m_index(static_cast<std::size_t>(stream))
    , m_window(window)
{
}

std::vector<LogTimes::Mark> LogTimes::next()
{
    std::vector<Mark> marks;
    const auto size = m_store.size(m_path);
    if (!size || *size <= m_at.value_or(0)) {
        return marks;
    }
    const bool begins = !m_at;
    const std::uint64_t from = begins ? *size - std::min(*size, m_window) : *m_at;
    const auto bytes = m_store.read_at(m_path, from, static_cast<std::size_t>(*size - from));
    if (!bytes) {
        return marks;
    }
    m_at = from + bytes->size();
    m_rest += *bytes;
    if (begins && from > 0) { // in the middle of a line
        m_rest.erase(0, m_rest.find('\n') + 1);
    } else if (begins) {
        marks.push_back({0, Time()}); // the bytes in the first line are not older
    }
    std::size_t used = 0;
    for (std::size_t end = 0; (end = m_rest.find('\n', used)) != std::string::npos;
         used = end + 1) {
        const auto time = parse_log_time(std::string_view(m_rest).substr(used, end - used));
        if (time && time->sizes[m_index] > m_size) {
            m_size = time->sizes[m_index];
            marks.push_back({m_size, time->at});
        }
    }
    m_rest.erase(0, used);
    m_rest.resize(m_rest.size() > k_longest ? 0 : m_rest.size());
    return marks;
}

LogTimes::Part LogTimes::part_from(std::uint64_t offset, const std::vector<Mark>& marks)
{
    const auto mark =
        std::upper_bound(marks.begin(), marks.end(), offset,
                         [](std::uint64_t from, const Mark& each) { return from < each.size; });
    if (mark == marks.end()) {
        return {std::nullopt, std::numeric_limits<std::uint64_t>::max()};
    }
    return {mark == marks.begin() ? std::nullopt : std::optional(mark->at), mark->size};
}

} // namespace gpuq
