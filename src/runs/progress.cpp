// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/progress.h"

#include "core/layout.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace gpuq {
namespace {

struct Word {
    std::string_view text;
    std::string_view unit;
};
/// In the order in which they count.
constexpr std::array k_words{Word{"epoch", "epoch"}, Word{"step", "step"},
                             Word{"iteration", "iteration"}, Word{"iter", "iteration"}};

bool is_letter(char c)
{
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

bool same(char a, char b)
{
    return std::tolower(static_cast<unsigned char>(a)) == b;
}

/// `max_iters = 9` is a setting, `global_step 9` is how far it is.
bool begins_word(std::string_view output, std::string_view::iterator at)
{
    const auto before = output.substr(0, static_cast<std::size_t>(at - output.begin()));
    return before.empty() || before.ends_with("global_") ||
           (!is_letter(before.back()) && before.back() != '_');
}

std::string_view without(std::string_view text, std::string_view bytes)
{
    text.remove_prefix(std::min(text.find_first_not_of(bytes), text.size()));
    return text;
}

/// Takes a whole number off `text`: not the 0 of a 0.37, which is a loss.
std::optional<std::uint64_t> take_number(std::string_view& text)
{
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const bool is_fraction = rest + 1 < end && *rest == '.' && std::isdigit(rest[1]) != 0;
    if (error != std::errc() || is_fraction) {
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

/// What stands after the word.
std::optional<Progress> progress_after(std::string_view text, std::string_view unit)
{
    text.remove_prefix(!text.empty() && same(text.front(), 's') ? 1 : 0);
    if (!text.empty() && is_letter(text.front())) {
        return std::nullopt; // another word, which begins like it
    }
    text = without(text, " :=#[(\t");
    const auto done = take_number(text);
    if (!done) {
        return std::nullopt;
    }
    return Progress{std::string(unit), *done, total_after(text)};
}

std::optional<Progress> find(std::string_view output, bool last)
{
    for (const Word& word : k_words) {
        std::optional<Progress> found;
        auto at = output.begin();
        while (true) {
            at = std::search(at, output.end(), word.text.begin(), word.text.end(), same);
            if (at == output.end()) {
                break;
            }
            const bool begins = begins_word(output, at);
            at += static_cast<std::ptrdiff_t>(word.text.size());
            const auto rest = output.substr(static_cast<std::size_t>(at - output.begin()));
            if (auto here = begins ? progress_after(rest, word.unit) : std::nullopt) {
                found = std::move(here);
                if (!last) {
                    break;
                }
            }
        }
        if (found) {
            return found;
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<Progress> first_progress(std::string_view output)
{
    return find(output, /*last=*/false);
}

std::optional<Progress> last_progress(std::string_view output)
{
    return find(output, /*last=*/true);
}

LinkProgress read_progress(Store& store, const RunKey& key, LinkNumber link)
{
    constexpr std::uint64_t k_most = 64 << 10;
    std::string begin;
    std::string end;
    for (const Stream stream : {Stream::out, Stream::err}) {
        const std::string log = layout::log(key, link, stream);
        const auto size = store.size(log);
        const std::uint64_t from = size && *size > k_most ? *size - k_most : 0;
        const auto head = store.read_at(log, 0, k_most);
        const auto tail = store.read_at(log, from, k_most);
        begin += head ? *head + "\n" : "";
        end += tail ? *tail + "\n" : "";
    }
    return {first_progress(begin), last_progress(end)};
}

std::optional<std::chrono::seconds> time_left(const Progress& first, const Progress& last,
                                              std::chrono::seconds between)
{
    constexpr double k_longest = 10.0 * 365 * 86400; // what takes longer is no forecast
    if (!last.total || first.unit != last.unit || last.done <= first.done ||
        *last.total < last.done || between.count() <= 0) {
        return std::nullopt;
    }
    const double each =
        static_cast<double>(between.count()) / static_cast<double>(last.done - first.done);
    const double left = each * static_cast<double>(*last.total - last.done);
    return left > k_longest ? std::nullopt
                            : std::optional(std::chrono::seconds(std::llround(left)));
}

} // namespace gpuq
