// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/host_list.h"

#include "core/number.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace gpuq {
namespace {

constexpr std::size_t k_most_digits = 9;

/// Splits `text` at commas outside brackets.
std::vector<std::string_view> parts_of(std::string_view text)
{
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    bool inside = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        inside = text[at] == '[' || (inside && text[at] != ']');
        if (text[at] == ',' && !inside) {
            parts.push_back(text.substr(begin, at - begin));
            begin = at + 1;
        }
    }
    parts.push_back(text.substr(begin));
    return parts;
}

bool is_name(std::string_view text)
{
    return std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    });
}

Error refused(std::string_view part, std::string_view why)
{
    return fail(Error::Kind::usage, fmt::format("invalid node list '{}': {}", part, why));
}

/// Adds the hosts of one range (`01-04`) or number (`7`), each between `head` and `tail`.
Result<void> add_range(std::vector<std::string>& hosts, std::string_view part,
                       std::string_view head, std::string_view range, std::string_view tail)
{
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    if (low.size() > k_most_digits || high.size() > k_most_digits) {
        return refused(part, fmt::format("more than {} digits", k_most_digits));
    }
    const auto first = whole_number(low);
    const auto last = whole_number(high);
    if (!first || !last) {
        return refused(part, fmt::format("'{}' is neither a number nor a range", range));
    }
    if (*last < *first) {
        return refused(part, fmt::format("the range {} runs backwards", range));
    }
    if (*last - *first >= k_most_hosts - std::min(hosts.size(), k_most_hosts)) {
        return refused(part, fmt::format("more than {} nodes", k_most_hosts));
    }
    for (std::uint64_t number = *first; number <= *last; ++number) {
        hosts.push_back(fmt::format("{}{:0{}}{}", head, number, low.size(), tail));
    }
    return {};
}

Result<void> add_part(std::vector<std::string>& hosts, std::string_view part)
{
    const std::size_t open = part.find('[');
    const std::size_t close = part.find(']');
    if (open == std::string_view::npos && close == std::string_view::npos) {
        if (part.empty() || !is_name(part)) {
            return refused(part, "a node's name has letters, digits, '-', '_' and '.'");
        }
        hosts.emplace_back(part);
        return {};
    }
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
        return refused(part, "a bracket is not closed");
    }
    const std::string_view head = part.substr(0, open);
    const std::string_view tail = part.substr(close + 1);
    if (head.empty() || !is_name(head) || !is_name(tail)) {
        return refused(part, "one bracket after a name, as in gpu[01-04]");
    }
    for (const std::string_view range : parts_of(part.substr(open + 1, close - open - 1))) {
        TRY(add_range(hosts, part, head, range, tail));
    }
    return {};
}

/// `gpu01` as `gpu` and `01`; without digits if they do not fit into a bracket.
struct Numbered {
    std::string_view head;
    std::string_view digits;
};

Numbered numbered(std::string_view host)
{
    const std::size_t last = host.find_last_not_of("0123456789");
    const std::string_view digits = last == std::string_view::npos ? "" : host.substr(last + 1);
    return digits.empty() || digits.size() > k_most_digits
               ? Numbered{host, ""}
               : Numbered{host.substr(0, last + 1), digits};
}

/// Consecutive hosts with the same name before their numbers.
struct Run {
    Numbered first;
    std::uint64_t last = 0;

    std::string digits(std::uint64_t number) const
    {
        return fmt::format("{:0{}}", number, first.digits.size());
    }
    bool shares_bracket_with(const Numbered& host) const
    {
        return !first.digits.empty() && !host.digits.empty() && host.head == first.head;
    }
    bool continues_with(const Numbered& host) const
    {
        return shares_bracket_with(host) && host.digits == digits(last + 1);
    }
    std::string text() const
    {
        const std::string end = digits(last);
        return end == first.digits ? end : fmt::format("{}-{}", first.digits, end);
    }
};

} // namespace

Result<std::vector<std::string>> expand_hosts(std::string_view text)
{
    std::vector<std::string> hosts;
    for (const std::string_view part : parts_of(text)) {
        TRY(add_part(hosts, part));
        if (hosts.size() > k_most_hosts) {
            return refused(text, fmt::format("more than {} nodes", k_most_hosts));
        }
    }
    std::set<std::string_view> seen;
    for (const std::string& host : hosts) {
        if (!seen.insert(host).second) {
            return refused(text, fmt::format("{} is listed twice", host));
        }
    }
    return hosts;
}

std::string host_list(const std::vector<std::string>& hosts)
{
    std::vector<Run> runs;
    for (const std::string& host : hosts) {
        const Numbered next = numbered(host);
        if (!runs.empty() && runs.back().continues_with(next)) {
            ++runs.back().last;
        } else {
            runs.push_back({next, whole_number(next.digits).value_or(0)});
        }
    }
    std::string text;
    for (std::size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
        std::vector<std::string> ranges;
        for (end = begin; end == begin ||
                          (end < runs.size() && runs[begin].shares_bracket_with(runs[end].first));
             ++end) {
            ranges.push_back(runs[end].first.digits.empty() ? "" : runs[end].text());
        }
        const std::string all = fmt::format("{}", fmt::join(ranges, ","));
        const bool is_list = all.find_first_of(",-") != std::string::npos;
        text += fmt::format("{}{}{}{}{}", begin > 0 ? "," : "", runs[begin].first.head,
                            is_list ? "[" : "", all, is_list ? "]" : "");
    }
    return text;
}

} // namespace gpuq
