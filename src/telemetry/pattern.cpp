// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::telemetry {
namespace {

constexpr std::size_t k_longest = 1000;
constexpr int k_most_groups = 32;

std::optional<std::uint64_t> count_in(std::string_view text)
{
    const auto number = number_in(text);
    const bool fits = number && *number >= 0 && *number < 1e18;
    return fits ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

} // namespace

struct Pattern::Compiled {
    re2::RE2 expression;
    std::vector<std::pair<std::string, int>> groups; ///< by number, from 1
};

Pattern::Pattern(std::unique_ptr<Compiled> compiled)
    : m_compiled(std::move(compiled))
{
}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::compile(std::string_view text)
{
    if (text.empty() || text.size() > k_longest) {
        return fail(Error::Kind::usage, fmt::format("a pattern has 1 to {} characters", k_longest));
    }
    re2::RE2::Options options(re2::RE2::Latin1); // lines are bytes
    options.set_log_errors(false);
    options.set_max_mem(4 << 20);
    std::unique_ptr<Compiled> compiled(
        new Compiled{re2::RE2(re2::StringPiece(text.data(), text.size()), options), {}});
    const re2::RE2& expression = compiled->expression;
    if (!expression.ok()) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is not a valid RE2 regular expression: {}", text,
                                expression.error()));
    }
    if (expression.NumberOfCapturingGroups() > k_most_groups) {
        return fail(Error::Kind::usage, fmt::format("more than {} groups", k_most_groups));
    }
    const auto& names = expression.NamedCapturingGroups();
    compiled->groups.assign(names.begin(), names.end());
    const bool has_captures = std::ranges::any_of(
        compiled->groups, [](const auto& group) { return group.first != "total"; });
    if (!has_captures) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' has no named group: write (?P<step>[0-9]+) around the step, "
                                "(?P<total>..), (?P<epoch>..) or (?P<loss>..)",
                                text));
    }
    return Pattern(std::move(compiled));
}

std::optional<ParsedLine> Pattern::match(std::string_view line) const
{
    const re2::RE2& expression = m_compiled->expression;
    std::vector<re2::StringPiece> parts(
        static_cast<std::size_t>(expression.NumberOfCapturingGroups()) + 1);
    const re2::StringPiece text(line.data(), line.size());
    if (!expression.Match(text, 0, line.size(), re2::RE2::UNANCHORED, parts.data(),
                          static_cast<int>(parts.size()))) {
        return std::nullopt;
    }
    ParsedLine parsed;
    std::optional<std::uint64_t> step;
    std::optional<std::uint64_t> epoch;
    std::optional<std::uint64_t> total;
    for (const auto& [name, number] : m_compiled->groups) {
        const re2::StringPiece& part = parts[static_cast<std::size_t>(number)];
        const std::string_view value(part.data() == nullptr ? "" : part.data(), part.size());
        if (name == "step") {
            step = count_in(value);
        } else if (name == "epoch") {
            epoch = count_in(value);
        } else if (name == "total") {
            total = count_in(value);
        } else if (const auto found = number_in(value)) {
            parsed.values.emplace_back(name, *found);
        }
    }
    if (step) {
        parsed.counters.push_back({"step", *step, total});
    }
    if (epoch) {
        parsed.counters.push_back({"epoch", *epoch, step ? std::nullopt : total});
    }
    return parsed;
}

} // namespace gpuq::telemetry
