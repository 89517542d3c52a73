// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/parameters.h"

#include "core/number.h"
#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <set>

namespace gpuq::sweeps {
namespace {

constexpr std::size_t k_longest_name = 64;
constexpr std::string_view k_log = "log:";
constexpr std::string_view k_range = "..";

template <typename Number>
std::optional<Number> number_in(std::string_view text)
{
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || error != std::errc{} || rest != end) {
        return std::nullopt;
    }
    return value;
}

Error wrong(std::string_view name, const std::string& reason)
{
    return fail(Error::Kind::usage, fmt::format("--over {}: {}", name, reason));
}

Result<Parameter> range_of(std::string_view name, std::string_view low, std::string_view high,
                           bool logarithmic)
{
    const auto first = number_in<std::int64_t>(low);
    const auto last = number_in<std::int64_t>(high);
    if (!logarithmic && first && last) {
        if (*first > *last) {
            return wrong(name, fmt::format("{}..{} is empty", low, high));
        }
        return Parameter{std::string(name), Parameter::Integers{*first, *last}};
    }
    const auto from = number_in<double>(low);
    const auto to = number_in<double>(high);
    if (!from || !to || !std::isfinite(*from) || !std::isfinite(*to)) {
        return wrong(name, fmt::format("'{}..{}' is not a range of numbers", low, high));
    }
    if (*from >= *to) {
        return wrong(name, fmt::format("{}..{} is empty", low, high));
    }
    if (!logarithmic && !std::isfinite(*to - *from)) {
        return wrong(name, fmt::format("{}..{} is too wide", low, high));
    }
    if (logarithmic && *from <= 0) {
        return wrong(name, fmt::format("log:{}..{} must begin above 0", low, high));
    }
    return Parameter{std::string(name), Parameter::Reals{*from, *to, logarithmic}};
}

/// Without blanks around it and a plus sign, which std::from_chars does not know.
std::string_view bare(std::string_view number)
{
    number = trimmed(number);
    number.remove_prefix(number.size() > 1 && number.front() == '+' ? 1 : 0);
    return number;
}

/// Whether it has the form of a number, of any size.
bool is_numeric(std::string_view text)
{
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return !text.empty() && error != std::errc::invalid_argument && rest == end;
}

struct Ends {
    std::string_view low, high;
    bool are_numbers() const { return is_numeric(low) && is_numeric(high) && high.front() != '.'; }
    /// Most likely a range with a mistake; a path such as `../data` is not.
    bool are_doubtful() const
    {
        const bool has_more = high.find(k_range) != std::string_view::npos; // 1..2..3
        return (is_numeric(low) && (high.empty() || high.front() == '.' || has_more)) ||
               (low.empty() && is_numeric(high));
    }
};

/// Both ends of `LOW..HIGH`, which may be anything.
std::optional<Ends> ends_of(std::string_view text)
{
    const auto at = text.find(k_range);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    return Ends{bare(text.substr(0, at)), bare(text.substr(at + k_range.size()))};
}

/// A value of a list.
Result<void> check_value(std::string_view name, std::string_view value)
{
    if (value.size() > k_longest_value || value.find('\0') != std::string_view::npos) {
        return wrong(name, "a value is too long");
    }
    const auto ends = ends_of(value);
    if (ends && ends->are_numbers()) {
        return wrong(name, fmt::format("'{}' is a range, which stands alone", value));
    }
    if (ends && ends->are_doubtful()) {
        return wrong(name, fmt::format("'{}' is not LOW..HIGH", value));
    }
    return {};
}

/// A number from 0 up to `bound`, without it, every one equally likely. Unlike
/// std::uniform_int_distribution, the same with every library.
std::uint64_t below(std::mt19937_64& random, std::uint64_t bound)
{
    const std::uint64_t fair = std::mt19937_64::max() - std::mt19937_64::max() % bound;
    std::uint64_t drawn = random();
    while (drawn >= fair) {
        drawn = random();
    }
    return drawn % bound;
}

double below_one(std::mt19937_64& random)
{
    return static_cast<double>(random() >> 11U) * 0x1p-53;
}

struct Draw {
    std::mt19937_64& random;

    std::string operator()(const Parameter::Choices& choices) const
    {
        return choices[below(random, choices.size())];
    }
    std::string operator()(const Parameter::Integers& range) const
    {
        const auto span =
            static_cast<std::uint64_t>(range.high) - static_cast<std::uint64_t>(range.low);
        const std::uint64_t offset = span == UINT64_MAX ? random() : below(random, span + 1);
        return std::to_string(
            static_cast<std::int64_t>(static_cast<std::uint64_t>(range.low) + offset));
    }
    std::string operator()(const Parameter::Reals& range) const
    {
        const double share = below_one(random);
        const double value = range.logarithmic
                                 ? std::exp(std::log(range.low) +
                                            share * (std::log(range.high) - std::log(range.low)))
                                 : range.low + share * (range.high - range.low);
        return fmt::format("{:.6g}", value);
    }
};

/// The number of values of a parameter; nullopt: not finite.
std::optional<std::uint64_t> count_of(const Parameter& parameter)
{
    if (const auto* choices = std::get_if<Parameter::Choices>(&parameter.values)) {
        return choices->size();
    }
    if (const auto* range = std::get_if<Parameter::Integers>(&parameter.values)) {
        const auto span =
            static_cast<std::uint64_t>(range->high) - static_cast<std::uint64_t>(range->low);
        return span == UINT64_MAX ? span : span + 1;
    }
    return std::nullopt;
}

std::string value_at(const Parameter& parameter, std::uint64_t index)
{
    if (const auto* choices = std::get_if<Parameter::Choices>(&parameter.values)) {
        return (*choices)[index];
    }
    return std::to_string(std::get<Parameter::Integers>(parameter.values).low +
                          static_cast<std::int64_t>(index));
}

} // namespace

Result<void> check_parameter_name(std::string_view name)
{
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const auto is_word = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
    if (name.empty() || name.size() > k_longest_name || !is_letter(name.front()) ||
        !std::all_of(name.begin(), name.end(), is_word)) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is not the name of a parameter: letters, digits and _, at "
                                "most {} characters",
                                name, k_longest_name));
    }
    return {};
}

Result<Parameter> parse_parameter(std::string_view text)
{
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
        return fail(Error::Kind::usage,
                    fmt::format("--over: '{}' is not NAME=VALUES, such as lr=1e-4,3e-4, "
                                "lr=log:1e-5..1e-2 or layers=2..8",
                                text));
    }
    const auto name = text.substr(0, equals);
    const auto values = text.substr(equals + 1);
    if (const auto valid = check_parameter_name(name); !valid) {
        return fail(Error::Kind::usage, "--over: " + valid.error().text);
    }
    const bool logarithmic = values.starts_with(k_log);
    const auto ends = ends_of(logarithmic ? values.substr(k_log.size()) : values);
    if (ends && ends->are_numbers()) {
        return range_of(name, ends->low, ends->high, logarithmic);
    }
    if (logarithmic) {
        return wrong(name, fmt::format("'{}' is not log:LOW..HIGH", values));
    }
    Parameter::Choices choices;
    const bool has_bars = values.find('|') != std::string_view::npos;
    for (const std::string_view value : split(values, has_bars ? "|" : ",")) {
        if (value.empty()) {
            return wrong(name, fmt::format("'{}' has an empty value", values));
        }
        TRY(check_value(name, value));
        if (std::find(choices.begin(), choices.end(), value) != choices.end()) {
            return wrong(name, fmt::format("'{}' is there twice", value));
        }
        choices.emplace_back(value);
    }
    return Parameter{std::string(name), std::move(choices)};
}

Result<std::vector<Values>> grid(const std::vector<Parameter>& parameters)
{
    std::vector<std::uint64_t> counts;
    std::uint64_t all = 1;
    for (const Parameter& parameter : parameters) {
        const auto count = count_of(parameter);
        if (!count) {
            return wrong(parameter.name, "a range of real numbers has no grid: list the values, or "
                                         "add --random N for N random tries");
        }
        if (*count > k_most_tries || all * *count > k_most_tries) {
            return fail(Error::Kind::usage,
                        fmt::format("--over: more than {} combinations; --random N takes N of them",
                                    k_most_tries));
        }
        all *= *count;
        counts.push_back(*count);
    }
    std::vector<Values> tries;
    for (std::uint64_t number = 0; number < all; ++number) {
        Values values(parameters.size());
        std::uint64_t rest = number;
        for (std::size_t i = parameters.size(); i-- > 0;) {
            values[i] = value_at(parameters[i], rest % counts[i]);
            rest /= counts[i];
        }
        tries.push_back(std::move(values));
    }
    return tries;
}

std::vector<Values> sample(const std::vector<Parameter>& parameters, std::size_t count,
                           std::uint64_t seed)
{
    constexpr std::size_t k_attempts = 1000; // for one more combination
    std::mt19937_64 random(seed);
    std::vector<Values> tries;
    std::set<Values> seen;
    std::size_t in_vain = 0;
    while (tries.size() < count && in_vain < k_attempts) {
        Values values;
        for (const Parameter& parameter : parameters) {
            values.push_back(std::visit(Draw{random}, parameter.values));
        }
        const bool is_new = seen.insert(values).second;
        in_vain = is_new ? 0 : in_vain + 1;
        if (is_new) {
            tries.push_back(std::move(values));
        }
    }
    return tries;
}

} // namespace gpuq::sweeps
