// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/heartbeat.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace gpuq {
namespace {

/// Removes a number and the blank after it from the text.
std::optional<std::uint64_t> next_number(std::string_view& text)
{
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end == text.data() + text.size() || *end != ' ') {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return value;
}

} // namespace

std::string to_line(const Heartbeat& beat)
{
    const auto seconds = std::chrono::floor<std::chrono::seconds>(beat.at).time_since_epoch();
    return fmt::format("{:<79}\n", fmt::format("{} {} {} {} {} ", seconds.count(), beat.job.value,
                                               beat.pid, beat.out, beat.err));
}

std::optional<Heartbeat> parse_heartbeat(std::string_view text)
{
    const auto seconds = next_number(text);
    const auto job = next_number(text);
    const auto pid = next_number(text);
    const auto out = next_number(text);
    const auto err = next_number(text);
    constexpr std::uint64_t k_last_second = 253'402'300'799; // in the year 9999
    if (!seconds || !job || !pid || !out || !err || *seconds > k_last_second ||
        !std::in_range<std::uint32_t>(*job) || !std::in_range<int>(*pid)) {
        return std::nullopt;
    }
    return Heartbeat{Time(std::chrono::seconds(*seconds)), JobId{static_cast<std::uint32_t>(*job)},
                     static_cast<int>(*pid), *out, *err};
}

bool is_within(const Heartbeat& beat, std::chrono::seconds age, Time now)
{
    return now - beat.at <= age && beat.at - now <= k_heartbeat_ahead;
}

bool is_fresh(const Heartbeat& beat, Time now)
{
    return is_within(beat, k_heartbeat_fresh, now);
}

} // namespace gpuq
