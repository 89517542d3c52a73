// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/line.h"

#include "core/number.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace gpuq::telemetry {
namespace {

struct Word {
    std::string_view text;
    std::string_view unit;
};
constexpr std::array k_keywords{Word{"epoch", "epoch"}, Word{"step", "step"},
                                Word{"iteration", "iteration"}, Word{"iter", "iteration"}};
constexpr std::size_t k_most_values = 64;
constexpr std::size_t k_longest_name = 64;

bool is_letter(char c)
{
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool same(char a, char b)
{
    return std::tolower(static_cast<unsigned char>(a)) == b;
}

bool has(std::string_view text, std::string_view lower_case_word)
{
    return std::search(text.begin(), text.end(), lower_case_word.begin(), lower_case_word.end(),
                       same) != text.end();
}

bool is(std::string_view text, std::string_view lower_case_word)
{
    return std::ranges::equal(text, lower_case_word, same);
}

/// True if a keyword may begin at `at`: `max_iters = 9` is a setting, `global_step 9` is progress.
bool begins_word(std::string_view line, std::size_t at)
{
    const auto before = line.substr(0, at);
    return before.empty() || before.ends_with("global_") ||
           (!is_letter(before.back()) && before.back() != '_');
}

std::string_view without(std::string_view text, std::string_view bytes)
{
    text.remove_prefix(std::min(text.find_first_not_of(bytes), text.size()));
    return text;
}

/// Removes a whole number from `text`. Rejects the 0 of 0.37, which is a loss, and that of 0%.
std::optional<std::uint64_t> take_number(std::string_view& text)
{
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const bool is_fraction = rest + 1 < end && *rest == '.' && is_digit(rest[1]);
    if (error != std::errc() || is_fraction || (rest != end && *rest == '%')) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    return number;
}

std::optional<std::uint64_t> total_after(std::string_view text)
{
    text = without(text, " ");
    if (text.starts_with('/')) {
        text = without(text.substr(1), " ");
    } else if (text.starts_with("of ")) {
        text = without(text.substr(3), " ");
    } else {
        return std::nullopt;
    }
    return take_number(text);
}

/// Parses the text after a keyword.
std::optional<Progress> progress_after(std::string_view text, std::string_view unit)
{
    text.remove_prefix(!text.empty() && same(text.front(), 's') ? 1 : 0);
    if (!text.empty() && is_letter(text.front())) {
        return std::nullopt; // a longer word with the same beginning
    }
    text = without(text, " :=#[(\t'\"");
    const auto done = take_number(text);
    if (!done) {
        return std::nullopt;
    }
    return Progress{std::string(unit), *done, total_after(text)};
}

std::optional<Progress> last_of(std::string_view line, const Word& word)
{
    std::optional<Progress> last;
    const auto* at = line.begin();
    while (true) {
        at = std::search(at, line.end(), word.text.begin(), word.text.end(), same);
        if (at == line.end()) {
            return last;
        }
        const bool begins = begins_word(line, static_cast<std::size_t>(at - line.begin()));
        at += static_cast<std::ptrdiff_t>(word.text.size());
        const auto rest = line.substr(static_cast<std::size_t>(at - line.begin()));
        if (auto here = begins ? progress_after(rest, word.unit) : std::nullopt) {
            last = std::move(here);
        }
    }
}

std::vector<Progress> parse_counters(std::string_view line)
{
    std::vector<Progress> found;
    for (const Word& word : k_keywords) {
        auto progress = last_of(line, word);
        const bool is_new = found.empty() || found.back().unit != word.unit;
        if (progress && is_new) {
            found.push_back(*std::move(progress));
        }
    }
    return found;
}

/// `1:02:03`, `02:03`.
std::optional<std::chrono::seconds> take_clock(std::string_view& text)
{
    std::uint64_t seconds = 0;
    for (int part = 0; part < 3; ++part) {
        std::uint64_t number = 0;
        const auto [rest, error] = std::from_chars(text.begin(), text.end(), number);
        if (error != std::errc() || number > 1'000'000) {
            return std::nullopt;
        }
        seconds = seconds * 60 + number;
        text.remove_prefix(static_cast<std::size_t>(rest - text.begin()));
        if (!text.starts_with(':')) {
            return std::chrono::seconds(seconds);
        }
        text.remove_prefix(1);
    }
    return std::nullopt;
}

/// `4.40it/s`, `2.10s/it`: steps per second. Nothing if the unit is not a step: bytes, examples.
std::optional<double> rate_in(std::string_view text)
{
    double number = 0;
    text = without(text, " ");
    const auto [rest, error] = std::from_chars(text.begin(), text.end(), number);
    if (error != std::errc() || !(number > 0) || !std::isfinite(number)) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(rest - text.begin()));
    constexpr std::array<std::string_view, 5> k_steps{"it", "step", "batch", "iter", " steps"};
    for (const std::string_view step : k_steps) {
        if (text.starts_with(std::string(step) + "/s")) {
            return number;
        }
        if (text.starts_with("s/" + std::string(step))) {
            return 1 / number;
        }
    }
    return std::nullopt;
}

/// `DONE/TOTAL`, and the text after it.
struct Counted {
    std::uint64_t done, total;
    std::string_view rest;
};
std::optional<Counted> counted_at(std::string_view text)
{
    const auto done = take_number(text);
    if (!done || !text.starts_with('/')) {
        return std::nullopt;
    }
    text.remove_prefix(1);
    const auto total = take_number(text);
    if (!total || *total == 0 || *done > *total) {
        return std::nullopt;
    }
    return Counted{*done, *total, text};
}

std::string trimmed(std::string_view text)
{
    text = without(text, " \t");
    const auto last = text.find_last_not_of(" \t:");
    return std::string(text.substr(0, last == text.npos ? 0 : last + 1));
}

std::optional<Bar> tqdm_in(std::string_view line)
{
    const auto percent = line.find("%|");
    const auto end = percent == line.npos ? line.npos : line.find("| ", percent + 2);
    if (end == line.npos) {
        return std::nullopt;
    }
    const auto counted = counted_at(without(line.substr(end + 2), " "));
    if (!counted || !counted->rest.starts_with(" [")) {
        return std::nullopt;
    }
    const auto title = line.substr(0, line.find_last_not_of("0123456789 ", percent - 1) + 1);
    Bar bar{trimmed(percent == 0 ? "" : title), counted->done, counted->total, {}, {}};
    std::string_view rest = counted->rest.substr(2);
    const auto elapsed = take_clock(rest);
    const auto comma = rest.find(", ");
    if (!elapsed || comma == rest.npos) {
        return std::nullopt;
    }
    bar.elapsed = *elapsed;
    bar.rate = rate_in(rest.substr(comma + 2));
    // `?it/s`: not known yet. A bar with another unit than steps is a download or similar.
    const bool is_steps = bar.rate || rest.substr(comma + 2).starts_with("?it/s");
    return is_steps ? std::optional(bar) : std::nullopt;
}

std::optional<Bar> keras_in(std::string_view line)
{
    const auto counted = counted_at(without(line, " \t"));
    if (!counted || !counted->rest.starts_with(' ')) {
        return std::nullopt;
    }
    const std::string_view rest = without(counted->rest, " ");
    constexpr std::string_view k_heavy = "\xe2\x94\x81"; // ━, Keras 3
    const bool is_bar = rest.starts_with("[=") || rest.starts_with("[>") ||
                        rest.starts_with("[.") || rest.starts_with(k_heavy);
    return is_bar ? std::optional(Bar{"", counted->done, counted->total, {}, {}}) : std::nullopt;
}

bool is_name(char c)
{
    return is_letter(c) || is_digit(c) || c == '_' || c == '/' || c == '.' || c == '-';
}

/// Names that programs commonly print before a number with only a blank in between: `val_acc 0.9`.
bool is_well_known(std::string_view name)
{
    const auto before = name.find_last_of("_/");
    const auto last = before == name.npos ? name : name.substr(before + 1);
    return has(name, "loss") || is(last, "acc") || is(last, "accuracy") || is(name, "lr");
}

bool is_place(std::string_view name)
{
    const auto bare = name.substr(name.rfind('_') == name.npos ? 0 : name.rfind('_') + 1);
    return std::ranges::any_of(k_keywords, [&](const Word& word) {
        return is(bare, word.text) || is(bare, std::string(word.text) + "s");
    });
}

/// Removes a number from `text`, if the character after it may follow a number.
std::optional<double> take_value(std::string_view& text)
{
    double number = 0;
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    const auto [rest, error] = std::from_chars(digits.begin(), digits.end(), number);
    if (error != std::errc() ||
        (rest != digits.end() && (is_letter(*rest) || *rest == ':' || *rest == '_'))) {
        return std::nullopt; // `info`, `12:30`
    }
    text = digits.substr(static_cast<std::size_t>(rest - digits.begin()));
    return number;
}

/// NAME, then `=`, `:` or, for some names, a blank, and a number.
std::vector<std::pair<std::string, double>> values_in(std::string_view line)
{
    std::vector<std::pair<std::string, double>> values;
    while (values.size() < k_most_values) {
        const auto begin = std::ranges::find_if(line, is_letter);
        if (begin == line.end()) {
            break;
        }
        line.remove_prefix(static_cast<std::size_t>(begin - line.begin()));
        const auto end = std::ranges::find_if_not(line, is_name);
        const auto name = line.substr(0, static_cast<std::size_t>(end - line.begin()));
        line.remove_prefix(name.size());
        std::string_view rest = without(line, "'\"");
        const bool is_reported = rest.starts_with('=') || rest.starts_with(':');
        if (!is_reported && !(rest.starts_with(' ') && is_well_known(name))) {
            continue;
        }
        rest = without(is_reported ? rest.substr(1) : rest, " '\"");
        const auto value = take_value(rest);
        if (value && name.size() <= k_longest_name && !is_place(name)) {
            values.emplace_back(name, *value);
        }
        line = value ? rest : line;
    }
    return values;
}

/// Removes ECMA-48 control sequences such as colours.
std::string plain(std::string_view line)
{
    std::string text;
    while (!line.empty()) {
        if (!line.starts_with("\x1b[")) {
            const auto next = std::min(line.find('\x1b', 1), line.size());
            text += line.substr(0, next);
            line.remove_prefix(next);
            continue;
        }
        line.remove_prefix(2);
        const auto end = std::ranges::find_if(line, [](char c) { return c >= '@' && c <= '~'; });
        line.remove_prefix(static_cast<std::size_t>(end - line.begin()) +
                           (end == line.end() ? 0 : 1));
    }
    return text;
}

} // namespace

std::optional<double> number_in(std::string_view text)
{
    text = without(text, " ");
    const auto value = take_value(text);
    return value && without(text, " %").empty() ? value : std::nullopt;
}

ParsedLine parse_line(std::string_view line)
{
    std::string coloured;
    if (line.find('\x1b') != line.npos) {
        coloured = plain(line);
        line = coloured;
    }
    ParsedLine parsed{parse_counters(line), tqdm_in(line), {}};
    if (!parsed.bar) {
        parsed.bar = keras_in(line);
    }
    // `Epochs: 30%|###   | 3/10 [..]`: a bar of epochs.
    if (parsed.bar && has(parsed.bar->title, "epoch") && parsed.counters.empty()) {
        parsed.counters.push_back({"epoch", parsed.bar->done, parsed.bar->total});
        parsed.bar.reset();
    }
    parsed.values = values_in(line);
    const bool has_loss =
        std::ranges::any_of(parsed.values, [](const auto& one) { return has(one.first, "loss"); });
    if (parsed.counters.empty() && !parsed.bar && !has_loss) {
        parsed.values.clear();
    }
    return parsed;
}

} // namespace gpuq::telemetry
