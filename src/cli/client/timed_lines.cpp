// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/timed_lines.h"

#include "report/ending_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace gpuq::cli {
namespace {

/// A longer line is cut.
constexpr std::size_t k_longest = 1 << 20;
constexpr int k_width = 19;

} // namespace

TimedLines::TimedLines(Store& store, const RunKey& key)
    : m_store(&store)
    , m_key(key)
{
}

void TimedLines::add(LinkNumber link, Stream stream, std::uint64_t offset, std::string_view bytes,
                     Steady now)
{
    Line& open = m_open[static_cast<std::size_t>(stream)];
    while (!bytes.empty()) {
        if (open.bytes.empty()) {
            open = {link, stream, offset, "", now};
        }
        const std::size_t size = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
        open.bytes += bytes.substr(0, size);
        offset += size;
        bytes.remove_prefix(size);
        if (open.bytes.back() == '\n' || open.bytes.size() > k_longest) {
            finish(stream, now);
        }
    }
}

std::vector<TimedLines::Text> TimedLines::take(Steady now)
{
    std::vector<Text> ready;
    while (!m_lines.empty()) {
        const auto at = time_of(m_lines.front());
        if (!at && m_store != nullptr && now - m_lines.front().since < k_timed_line_patience) {
            break;
        }
        ready.push_back(text_of(m_lines.front(), at));
        m_lines.pop_front();
    }
    return ready;
}

std::vector<TimedLines::Text> TimedLines::take_rest()
{
    for (const Stream stream : {Stream::out, Stream::err}) {
        if (!m_open[static_cast<std::size_t>(stream)].bytes.empty()) {
            finish(stream, Steady::min());
        }
    }
    std::vector<Text> rest;
    for (const Line& line : std::exchange(m_lines, {})) {
        rest.push_back(text_of(line, time_of(line)));
    }
    return rest;
}

void TimedLines::finish(Stream stream, Steady now)
{
    Line line = std::exchange(m_open[static_cast<std::size_t>(stream)], {});
    line.since = now;
    if (line.bytes.back() != '\n') {
        line.bytes += '\n';
    }
    m_lines.push_back(std::move(line));
}

std::optional<Time> TimedLines::time_of(const Line& line)
{
    if (m_store == nullptr) {
        return std::nullopt;
    }
    const std::pair place(line.link, line.stream);
    auto times = m_times.find(place);
    if (times == m_times.end()) {
        constexpr auto k_all = std::numeric_limits<std::uint64_t>::max();
        LogTimes reader(*m_store, *m_key, line.link, line.stream, k_all);
        times = m_times.emplace(place, Times{std::move(reader), {}}).first;
    }
    auto& [reader, marks] = times->second;
    if (marks.empty() || marks.back().size <= line.offset) {
        const auto news = reader.next();
        marks.insert(marks.end(), news.begin(), news.end());
    }
    return LogTimes::part_from(line.offset, marks).at;
}

TimedLines::Text TimedLines::text_of(const Line& line, const std::optional<Time>& at) const
{
    return {line.stream,
            fmt::format("{:<{}} {}", at ? full_moment_text(*at) : "?", k_width, line.bytes)};
}

} // namespace gpuq::cli
