// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/noted_use.h"

#include "core/number.h"
#include "telemetry/ledger.h"

#include <fmt/format.h>

namespace gpuq {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Ten thousand GPUs for three hundred years.
constexpr std::uint64_t k_most_seconds = 100'000'000'000'000;

/// Removes `name=`, a number and one blank after it from the beginning of `note`; returns the
/// number.
std::optional<seconds> take(std::string_view& note, std::string_view name)
{
    if (!note.starts_with(name) || note.substr(name.size(), 1) != "=") {
        return std::nullopt;
    }
    note.remove_prefix(name.size() + 1);
    const std::string_view digits = note.substr(0, note.find(' '));
    note.remove_prefix(std::min(digits.size() + 1, note.size()));
    const auto number = whole_number(digits);
    return number && *number <= k_most_seconds
               ? std::optional(seconds(static_cast<std::int64_t>(*number)))
               : std::nullopt;
}

} // namespace

std::string to_note(const GpuTime& use)
{
    using std::chrono::floor;
    using std::chrono::round;
    const GpuTime whole =
        of_allocated({round<seconds>(use.busy), round<seconds>(use.idle), milliseconds(0)},
                     floor<seconds>(use.allocated()));
    return fmt::format("busy={} idle={} unknown={}", floor<seconds>(whole.busy).count(),
                       floor<seconds>(whole.idle).count(), floor<seconds>(whole.unknown).count());
}

std::optional<GpuTime> noted_use(std::string_view comment)
{
    const auto blank = comment.find(' ');
    std::string_view note = comment.substr(std::min(blank, comment.size()));
    note.remove_prefix(std::min<std::size_t>(1, note.size()));
    const auto busy = take(note, "busy");
    const auto idle = busy ? take(note, "idle") : std::nullopt;
    const auto unknown = idle ? take(note, "unknown") : std::nullopt;
    return unknown ? std::optional(GpuTime{*busy, *idle, *unknown}) : std::nullopt;
}

} // namespace gpuq
