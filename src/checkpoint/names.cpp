// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/names.h"

#include "core/number.h"

#include <algorithm>
#include <array>
#include <vector>

namespace gpuq::checkpoint {
namespace {

using namespace std::string_view_literals;

constexpr auto k_digits = "0123456789"sv;

/// A whole number in a name, and the text before it.
struct Number {
    std::string_view before;
    std::string_view digits;
};

/// `name` without its extension, unless that is a number: `epoch-7` for `epoch-7.h5`.
std::string_view without_ending(std::string_view name)
{
    const std::size_t dot = name.rfind('.');
    const bool is_ending = dot != std::string_view::npos && dot > 0 &&
                           name.find_first_not_of(k_digits, dot + 1) != std::string_view::npos;
    return is_ending ? name.substr(0, dot) : name;
}

/// Extracts the next number of the name, including decimals; nothing if there are no more.
std::optional<std::string_view> next_number(std::string_view name, std::size_t& at)
{
    const std::size_t begin = name.find_first_of(k_digits, at);
    if (begin == std::string_view::npos) {
        return std::nullopt;
    }
    at = std::min(name.find_first_not_of("0123456789.", begin), name.size());
    const std::size_t last = name.find_last_of(k_digits, at - 1); // exclude a full stop after it
    return name.substr(begin, last + 1 - begin);
}

std::vector<Number> numbers_in(std::string_view name)
{
    std::vector<Number> numbers;
    std::size_t at = 0;
    while (const auto digits = next_number(name, at)) {
        if (digits->find('.') == std::string_view::npos) {
            const auto before = static_cast<std::size_t>(digits->data() - name.data());
            numbers.push_back({name.substr(0, before), *digits});
        }
    }
    return numbers;
}

/// True if the text ends with the keyword, optionally followed by `=`, `_` or `-`.
bool ends_with_word(std::string_view text, std::string_view word)
{
    if (!text.empty() && "=_-"sv.find(text.back()) != std::string_view::npos) {
        text.remove_suffix(1);
    }
    return text.ends_with(word);
}

std::optional<std::uint64_t> step_in(std::string_view name)
{
    const std::vector<Number> numbers = numbers_in(without_ending(name));
    for (const std::string_view word : {"step"sv, "iter"sv, "epoch"sv}) {
        const auto found =
            std::find_if(numbers.rbegin(), numbers.rend(),
                         [&](const Number& number) { return ends_with_word(number.before, word); });
        if (found != numbers.rend()) {
            return whole_number(found->digits);
        }
    }
    return numbers.empty() ? std::nullopt : whole_number(numbers.back().digits);
}

} // namespace

bool matches(std::string_view pattern, std::string_view name)
{
    if (name.starts_with('.') && !pattern.starts_with('.')) {
        return false;
    }
    std::size_t star = std::string_view::npos; // the last `*` in the pattern, and the end of its
                                               // match
    std::size_t taken = 0;
    std::size_t at = 0;
    for (std::size_t here = 0; here < name.size();) {
        if (at < pattern.size() && pattern[at] == '*') {
            star = at++;
            taken = here;
        } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[here])) {
            ++at;
            ++here;
        } else if (star != std::string_view::npos) {
            at = star + 1;
            here = ++taken;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

bool is_unfinished(std::string_view name)
{
    return name.ends_with(".tmp") || name.ends_with(".part") || name.starts_with("tmp-") ||
           name.find(".orbax-checkpoint-tmp") != std::string_view::npos;
}

bool is_temporary(std::string_view name)
{
    return is_unfinished(name) || name.ends_with('~') ||
           name.find(".incomplete") != std::string_view::npos;
}

std::optional<std::uint64_t> step_of(std::string_view relative_path)
{
    while (!relative_path.empty()) {
        const std::size_t slash = relative_path.rfind('/');
        const std::size_t name = slash == std::string_view::npos ? 0 : slash + 1;
        if (const auto step = step_in(relative_path.substr(name))) {
            return step;
        }
        relative_path = relative_path.substr(0, slash == std::string_view::npos ? 0 : slash);
    }
    return std::nullopt;
}

} // namespace gpuq::checkpoint
