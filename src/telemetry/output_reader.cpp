// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/output_reader.h"

#include <algorithm>
#include <limits>
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

} // namespace

void OutputReader::feed(std::string_view bytes)
{
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
    const Told told = m_own != nullptr ? m_own->match(line).value_or(Told{}) : told_by(line);
    for (const Progress& place : told.words) {
        const auto unit = std::ranges::find(k_units, place.unit) - k_units.begin();
        auto& range = m_words[static_cast<std::size_t>(unit)];
        range = Range{range ? range->first : place, place};
    }
    if (told.bar) {
        take_bar(*told.bar);
    }
    for (const auto& [name, value] : told.values) {
        m_curves.add(name, {step(), std::nullopt, value});
    }
}

void OutputReader::take_bar(const Bar& bar)
{
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
    const auto longest = std::ranges::max_element(
        m_bars, {}, [](const Bars& bars) { return std::tuple(bars.last.elapsed, bars.line); });
    return longest == m_bars.end() ? nullptr : &*longest;
}

std::optional<OutputReader::Range> OutputReader::range() const
{
    const auto word =
        std::ranges::find_if(m_words, [](const auto& one) { return one.has_value(); });
    if (word != m_words.end()) {
        return *word;
    }
    const Bars* const bars = main_bar();
    if (bars == nullptr) {
        return std::nullopt;
    }
    const auto place = [](const Bar& bar) { return Progress{"step", bar.done, bar.total}; };
    return Range{place(bars->first), place(bars->last)};
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

std::optional<Bar> OutputReader::bar() const
{
    const Bars* const bars = main_bar();
    return bars != nullptr ? std::optional(bars->last) : std::nullopt;
}

/// Where a value belongs that the newest line tells.
std::int64_t OutputReader::step() const
{
    for (const auto unit : {1U, 2U}) {
        if (m_words[unit]) {
            return as_step(m_words[unit]->last.done);
        }
    }
    const auto& epoch = m_words[0];
    if (const Bars* const bars = main_bar()) {
        const auto before = static_cast<double>(epoch ? epoch->last.done : 0) *
                            static_cast<double>(bars->last.total);
        return before < 1e15 ? static_cast<std::int64_t>(before) + as_step(bars->last.done)
                             : as_step(bars->last.done);
    }
    return as_step(epoch ? epoch->last.done : m_lines);
}

} // namespace gpuq::telemetry
