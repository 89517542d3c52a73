// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/output_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>
#include <tuple>

namespace gpuq::telemetry {
namespace {

constexpr std::size_t k_longest_line = 16 << 10;
constexpr std::size_t k_most_bars = 8;
constexpr std::string_view k_ends = "\n\r\b";
constexpr std::array<std::string_view, 3> k_units{"epoch", "step", "iteration"};

std::int64_t as_step(std::uint64_t number)
{
    constexpr std::uint64_t k_most = std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(std::min(number, k_most));
}

constexpr std::string_view k_epoch = "Epoch";

/// `Epoch 2/3` and nothing else.
bool is_header(std::string_view line)
{
    const auto rest = line.substr(std::min(k_epoch.size(), line.size()));
    return line.starts_with(k_epoch) && rest.find_first_not_of(" 0123456789/") == rest.npos;
}

/// The epoch in a bar's title: `Epoch 2`, as printed by Lightning.
std::optional<std::uint64_t> epoch_of_title(std::string_view title)
{
    if (!title.starts_with(k_epoch)) {
        return std::nullopt;
    }
    title.remove_prefix(k_epoch.size());
    title.remove_prefix(std::min(title.find_first_not_of(' '), title.size()));
    std::uint64_t number = 0;
    const char* const end = title.data() + title.size();
    const auto [rest, error] = std::from_chars(title.data(), end, number);
    return error == std::errc() && (rest == end || *rest == '/') ? std::optional(number)
                                                                 : std::nullopt;
}

} // namespace

void OutputReader::feed(std::string_view bytes, std::optional<Time> at)
{
    m_at = at;
    while (!bytes.empty()) {
        const auto end = bytes.find_first_of(k_ends);
        const auto part = bytes.substr(0, end);
        m_line += part.substr(0, k_longest_line - m_line.size());
        if (end == bytes.npos) {
            return;
        }
        end_line();
        bytes.remove_prefix(end + 1);
    }
}

void OutputReader::end_line()
{
    if (!m_line.empty()) {
        take_line(m_line);
        m_line.clear();
    }
}

void OutputReader::take_line(std::string_view line)
{
    ++m_lines;
    const ParsedLine parsed =
        m_own != nullptr ? m_own->match(line).value_or(ParsedLine{}) : parse_line(line);
    for (const Progress& place : parsed.counters) {
        take_place(place, is_header(line));
    }
    if (const auto place = step_of_all(parsed.counters)) {
        add(m_all_steps, *place);
    }
    if (parsed.bar) {
        m_headers_begin = m_headers_begin || m_header.has_value();
        take_bar(*parsed.bar);
        if (parsed.bar->done == 0) {
            return; // a bar that starts again still shows the values of the previous one
        }
    }
    for (const auto& [name, value] : parsed.values) {
        m_curves.add(name, {step(), m_at, value});
    }
}

void OutputReader::take_place(const Progress& place, bool is_header)
{
    const auto unit = std::ranges::find(k_units, place.unit) - k_units.begin();
    auto& range = m_counters[static_cast<std::size_t>(unit)];
    if (unit == 0) {
        m_header = is_header ? std::optional(m_lines) : std::nullopt;
        m_printed_as_they_begin = range ? m_printed_as_they_begin : is_header;
    }
    add(range, place);
}

void OutputReader::add(std::optional<Range>& range, const Progress& place)
{
    if (!range) {
        range = Range{place, place, {}};
        return;
    }
    range->last = place;
    if (!range->second && place.done != range->first.done) {
        range->second = place.done;
    }
}

/// For a line that contains both an epoch and a step. A validation in between counts other steps.
std::optional<Progress> OutputReader::step_of_all(const std::vector<Progress>& counters)
{
    constexpr std::uint64_t k_most = 1'000'000'000; // for each: their product does not overflow
    const auto fits = [](const Progress& place) {
        return place.total && *place.total > 0 && *place.total < k_most &&
               place.done <= *place.total;
    };
    const auto epoch = std::ranges::find(counters, k_units[0], &Progress::unit);
    const auto step = std::ranges::find_if(
        counters, [&](const Progress& place) { return place.unit != k_units[0]; });
    if (epoch == counters.end() || step == counters.end() || !fits(*epoch) || !fits(*step) ||
        (m_in_epoch && m_in_epoch->total != *step->total)) {
        return std::nullopt;
    }
    m_steps_continue = m_steps_continue || (m_in_epoch && epoch->done > m_in_epoch->epoch &&
                                            step->done > m_in_epoch->step);
    m_epochs_from_zero = m_epochs_from_zero || epoch->done == 0;
    m_in_epoch = InEpoch{epoch->done, step->done, *step->total};
    const std::uint64_t before = epoch->done - (m_epochs_from_zero ? 0 : 1);
    return Progress{step->unit, before * *step->total + step->done, *epoch->total * *step->total};
}

void OutputReader::take_bar(Bar bar)
{
    if (const auto epoch = epoch_of_title(bar.title)) {
        m_titles = Titles{m_titles ? m_titles->first : std::min<std::uint64_t>(*epoch, 1), *epoch};
        bar.title = k_epoch; // all epochs share one bar
    }
    const auto found = std::ranges::find_if(m_bars, [&](const Bars& bars) {
        return bars.last.title == bar.title && bars.last.total == bar.total;
    });
    if (found != m_bars.end()) {
        found->last = bar;
        found->line = m_lines;
        return;
    }
    if (m_bars.size() == k_most_bars) {
        m_bars.erase(std::ranges::min_element(m_bars, {}, &Bars::line));
    }
    m_bars.push_back({bar, bar, m_lines});
}

const OutputReader::Bars* OutputReader::main_bar() const
{
    const auto longest = std::ranges::max_element(m_bars, {}, [](const Bars& bars) {
        return std::tuple(bars.last.title == k_epoch, bars.last.elapsed, bars.line);
    });
    return longest == m_bars.end() ? nullptr : &*longest;
}

std::optional<OutputReader::Range> OutputReader::range() const
{
    if (counts_in_epochs()) {
        return m_all_steps;
    }
    const auto word =
        std::ranges::find_if(m_counters, [](const auto& one) { return one.has_value(); });
    if (word == m_counters.begin() && m_headers_begin) {
        Range epochs = **word;
        epochs.first.done -= std::min<std::uint64_t>(epochs.first.done, 1);
        epochs.last.done -= is_epoch_over() ? 0 : std::min<std::uint64_t>(epochs.last.done, 1);
        epochs.second.reset();
        return epochs;
    }
    if (word != m_counters.end()) {
        Range range = **word;
        if (word == m_counters.begin() && m_printed_as_they_begin) {
            range.second.reset();
        }
        return range;
    }
    const Bars* const bars = main_bar();
    if (bars == nullptr) {
        return std::nullopt;
    }
    const auto place = [](const Bar& bar) { return Progress{"step", bar.done, bar.total}; };
    return Range{place(bars->first), place(bars->last), {}};
}

std::optional<Progress> OutputReader::first() const
{
    const auto both = range();
    return both ? std::optional(both->first) : std::nullopt;
}

std::optional<Progress> OutputReader::last() const
{
    const auto both = range();
    return both ? std::optional(both->last) : std::nullopt;
}

std::optional<Progress> OutputReader::began() const
{
    const auto both = range();
    if (!both) {
        return std::nullopt;
    }
    Progress place = both->first;
    if (both->second && *both->second > place.done) {
        place.done -= std::min(place.done, *both->second - place.done);
    }
    return place;
}

std::optional<Bar> OutputReader::bar() const
{
    const Bars* const bars = main_bar();
    return bars != nullptr ? std::optional(bars->last) : std::nullopt;
}

/// True if the bar after the newest header is complete.
bool OutputReader::is_epoch_over() const
{
    const Bars* const bars = main_bar();
    return bars != nullptr && m_header && bars->line > *m_header &&
           bars->last.done == bars->last.total;
}

/// The number of epochs before the one whose bar is drawn.
std::uint64_t OutputReader::epochs_before() const
{
    if (m_titles) {
        return m_titles->last - std::min(m_titles->last, m_titles->first);
    }
    const std::uint64_t parsed = m_counters[0] ? m_counters[0]->last.done : 0;
    return m_headers_begin ? parsed - std::min<std::uint64_t>(parsed, 1) : parsed;
}

/// The step that the newest line's values belong to.
std::int64_t OutputReader::step() const
{
    if (counts_in_epochs()) {
        return as_step(m_all_steps->last.done);
    }
    for (const auto unit : {1U, 2U}) {
        if (m_counters[unit]) {
            return as_step(m_counters[unit]->last.done);
        }
    }
    const auto& epoch = m_counters[0];
    if (const Bars* const bars = main_bar()) {
        const auto before =
            static_cast<double>(epochs_before()) * static_cast<double>(bars->last.total);
        return before < 1e15 ? static_cast<std::int64_t>(before) + as_step(bars->last.done)
                             : as_step(bars->last.done);
    }
    return as_step(epoch ? epoch->last.done : m_lines);
}

} // namespace gpuq::telemetry
