// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/gres.h"

#include "slurm/jobs.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace gpuq::slurm {
namespace {

/// Removes and returns the text before the next `separator` outside parentheses.
std::string_view take(std::string_view& text, char separator)
{
    int depth = 0;
    std::size_t end = 0;
    for (; end < text.size() && (depth > 0 || text[end] != separator); ++end) {
        depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    }
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return taken;
}

std::optional<int> number(std::string_view text)
{
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                    : std::nullopt;
}

/// Removes the prefix of a TRES string.
std::string_view without_prefix(std::string_view item)
{
    for (const std::string_view prefix : {"gres/", "gres:"}) {
        if (item.starts_with(prefix)) {
            item.remove_prefix(prefix.size());
        }
    }
    return item;
}

constexpr std::string_view k_no_type = "(null)"; // of shares of GPUs without a type, in 22.05

std::optional<Gres> parse_item(std::string_view item, std::string_view name)
{
    item = without_prefix(item);
    const std::size_t no_type = item.find(k_no_type);
    item = item.substr(
        0, item.find('(', no_type == std::string_view::npos ? 0 : no_type + k_no_type.size()));
    if (take(item, ':') != name) {
        return std::nullopt;
    }
    Gres gres{"", 1};
    while (!item.empty()) {
        const std::string_view word = take(item, ':');
        if (const auto count = number(word)) {
            gres.count = *count;
        } else if (word != "no_consume" && word != k_no_type) {
            gres.model = word;
        }
    }
    return gres;
}

constexpr int k_most_gpus = 1024; ///< of a node

/// The indices in `0,2-3`; nullopt if there are none.
std::optional<std::vector<int>> indices_in(std::string_view list)
{
    std::vector<int> indices;
    while (!list.empty()) {
        std::string_view last = take(list, ',');
        const auto first = number(take(last, '-'));
        const auto end = last.empty() ? first : number(last);
        if (!first || !end || *end < *first || *end >= k_most_gpus) {
            return std::nullopt;
        }
        for (int index = *first; index <= *end; ++index) {
            indices.push_back(index);
        }
    }
    return indices;
}

/// Held shares, and the GPUs to which they belong.
struct Held {
    std::optional<std::vector<int>> gpus;
    std::optional<int> parts;
};

/// From the shares in use of each GPU: `3/4,0/4`.
Held held_in(std::string_view list)
{
    Held held{std::vector<int>(), 0};
    for (int index = 0; !list.empty(); ++index) {
        std::string_view gpu = take(list, ',');
        const int parts = number(take(gpu, '/')).value_or(0);
        *held.parts += parts;
        if (parts > 0) {
            held.gpus->push_back(index);
        }
    }
    return held;
}

constexpr std::string_view k_indices = "IDX:";

/// Of an item such as `shard:k80:1(IDX:0)`. Nothing if it does not list GPUs.
Held held_in_item(std::string_view item)
{
    if (!item.ends_with(')')) {
        return {};
    }
    std::string_view list = item.substr(item.rfind('(') + 1);
    list.remove_suffix(1);
    if (list.starts_with(k_indices)) {
        list.remove_prefix(k_indices.size());
        auto gpus = list == "N/A" ? std::vector<int>() : indices_in(list);
        const bool none = gpus && gpus->empty();
        return {std::move(gpus), none ? std::optional(0) : std::nullopt};
    }
    return list.find('/') == std::string_view::npos ? Held{} : held_in(list);
}

/// From a node's GRES in use. Nothing if it does not list GPUs.
Held held_of(std::string_view text, std::string_view name, std::string_view model)
{
    while (!text.empty()) {
        const std::string_view item = take(text, ',');
        const auto gres = parse_item(item, name);
        if (gres && gres->model == model && item.ends_with(')')) {
            return held_in_item(item);
        }
    }
    return {};
}

/// With the counts of the same model added up.
std::vector<Gres> summed_up(std::string_view text, std::string_view name)
{
    std::vector<Gres> sums;
    for (const Gres& gres : parse_gres(text, name)) {
        const auto same = std::find_if(sums.begin(), sums.end(),
                                       [&](const Gres& one) { return one.model == gres.model; });
        if (same == sums.end()) {
            sums.push_back(gres);
        } else {
            same->count += gres.count;
        }
    }
    return sums;
}

int count_of(const std::vector<Gres>& list, const std::string& model)
{
    int count = 0;
    for (const Gres& gres : list) {
        count += model.empty() || gres.model == model ? gres.count : 0;
    }
    return count;
}

} // namespace

std::vector<NodeGpus> gpus_of_node(std::string_view gres, std::optional<std::string_view> used)
{
    const auto in_use = summed_up(used.value_or(""), "gpu");
    std::vector<NodeGpus> gpus;
    for (const Gres& one : summed_up(gres, "gpu")) {
        int count = 0;
        for (const Gres& held : in_use) {
            count += held.model == one.model ? held.count : 0;
        }
        gpus.push_back({one.model, one.count, used ? std::optional(count) : std::nullopt});
    }
    for (const NodeShares& shares : shares_of_node(gres, used, std::nullopt)) {
        for (NodeGpus& one : gpus) {
            const bool has = one.in_use && one.model == shares.model;
            one.in_use =
                has ? std::min(one.total, *one.in_use + shares.gpus.value_or(0)) : one.in_use;
        }
    }
    return gpus;
}

std::vector<NodeShares> shares_of_node(std::string_view gres, std::optional<std::string_view> used,
                                       std::optional<std::string_view> held)
{
    const auto gpus = summed_up(gres, "gpu");
    std::vector<NodeShares> list;
    for (const auto kind : {GpuShare::Kind::shard, GpuShare::Kind::mps}) {
        const auto types = summed_up(gres, word(kind));
        for (const Gres& one : types) {
            const int of = count_of(gpus, one.model);
            if (of == 0 || one.count == 0) {
                continue;
            }
            const Held known = held_of(used.value_or(""), word(kind), one.model);
            const auto held_gpus =
                known.gpus ? std::optional(static_cast<int>(known.gpus->size())) : std::nullopt;
            NodeShares shares{kind,      one.model,   (one.count + of - 1) / of,
                              one.count, known.parts, held_gpus};
            if (!shares.in_use && held && types.size() == 1) {
                shares.in_use = gpus_in_tres(*held, word(kind));
            }
            list.push_back(shares);
        }
    }
    return list;
}

std::vector<HeldShares> shares_of_job(std::string_view detail, const std::string& node)
{
    std::vector<HeldShares> list;
    while (!detail.empty()) {
        const std::string_view item = take(detail, ',');
        for (const auto kind : {GpuShare::Kind::shard, GpuShare::Kind::mps}) {
            const auto gres = parse_item(item, word(kind));
            if (gres && gres->count > 0) {
                auto gpus = held_in_item(item).gpus.value_or(std::vector<int>());
                list.push_back({node, gres->model, kind, gres->count, std::move(gpus)});
            }
        }
    }
    return list;
}

std::vector<Gres> parse_gres(std::string_view text, std::string_view name)
{
    std::vector<Gres> found;
    while (!text.empty()) {
        if (const auto gres = parse_item(take(text, ','), name)) {
            found.push_back(*gres);
        }
    }
    return found;
}

} // namespace gpuq::slurm
