// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/ambiguous_gpus.h"

#include "core/strings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gpuq::policy {
namespace {

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

std::string_view without_prefix(std::string_view item)
{
    return item.starts_with("gres:") || item.starts_with("gres/") ? item.substr(5) : item;
}

/// The name of a type, without characters with which strtoull(3) reads a number: `+4` is one.
bool is_type(std::string_view text, bool may_begin_with_digit)
{
    return !text.empty() && text.front() != '-' &&
           (may_begin_with_digit || !is_digit(text.front())) &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
           });
}

bool is_count(std::string_view text)
{
    if (!text.empty() && (text.back() == 'k' || text.back() == 'K')) {
        text.remove_suffix(1);
    }
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// Items of one or several TRES strings that name GPUs or shares of them.
class GpuItems {
public:
    void add(std::string_view tres)
    {
        std::vector<std::string> types;
        for (const std::string_view item : split(tres, ",")) {
            add_item(item, types);
        }
    }
    bool is_ambiguous() const { return m_is_ambiguous; }

private:
    void add_item(std::string_view item, std::vector<std::string>& types)
    {
        const std::string_view rest = without_prefix(item);
        const auto parts = split(rest, ":=");
        if (rest.find("gres:") != std::string_view::npos ||
            rest.find("gres/") != std::string_view::npos) {
            m_is_ambiguous = true;
        } else if (parts.front() == "gpu" || parts.front() == "shard" || parts.front() == "mps") {
            const bool counted = parts.size() == 3 || (parts.size() == 2 && is_count(parts[1]));
            std::string type(parts.front());
            if (parts.size() == 3 || (parts.size() == 2 && !counted)) {
                type += ":" + std::string(parts[1]);
            }
            const bool is_valid =
                parts.size() == 1 || (parts.size() == 2 && (counted || is_type(parts[1], false))) ||
                (parts.size() == 3 && is_type(parts[1], true) && is_count(parts[2]));
            const bool is_repeated = std::find(types.begin(), types.end(), type) != types.end();
            m_is_ambiguous = m_is_ambiguous || !is_valid || is_repeated ||
                             (parts.front() == "gpu" && !has_usual_prefix(item));
            types.push_back(std::move(type));
        }
    }

    /// A release of Slurm reads items with one prefix only.
    bool has_usual_prefix(std::string_view item)
    {
        const std::string_view prefix = item.substr(0, item.size() - without_prefix(item).size());
        m_prefix = m_prefix.value_or(prefix);
        return !prefix.empty() && *m_prefix == prefix;
    }

    bool m_is_ambiguous = false;
    std::optional<std::string_view> m_prefix;
};

constexpr std::array k_tres = {&SubmittedTres::per_job, &SubmittedTres::per_node,
                               &SubmittedTres::per_task, &SubmittedTres::per_socket};

/// How this release of Slurm begins a GPU item in the job's own texts: `gres:` or `gres/`; empty:
/// the job has no GPUs.
std::string_view gres_prefix(const Submission& job)
{
    for (const auto field : k_tres) {
        for (const std::string_view item : split(job.tres.*field, ",")) {
            if (item.starts_with("gres:") || item.starts_with("gres/")) {
                return item.substr(0, 5);
            }
        }
    }
    return "";
}

std::uint64_t count_in(const std::string& tres)
{
    std::uint64_t total = 0;
    for (const GpuCount& gpus : gpus_in_tres(tres)) {
        total += static_cast<std::uint64_t>(gpus.count);
    }
    return total;
}

/// Whether the job states its GPUs in two ways of which Slurm may follow the smaller one.
bool has_two_totals(const Submission& job)
{
    const std::uint64_t per_job = count_in(job.tres.per_job);
    const std::uint64_t per_node = count_in(job.tres.per_node);
    const std::uint64_t tasks = job.num_tasks.value_or(0);
    if (count_in(job.tres.per_socket) > 0 && (per_job > 0 || count_in(job.tres.per_task) > 0)) {
        return true;
    }
    return tasks > 0 && per_node > 0 && tasks < (per_job + per_node - 1) / per_node;
}

} // namespace

bool has_ambiguous_gpus(const Submission& job)
{
    GpuItems items;
    for (const std::string* tres : {&job.tres.per_job, &job.tres.per_node, &job.tres.per_task,
                                    &job.tres.per_socket, &job.tres.cpus, &job.tres.mem}) {
        items.add(*tres);
    }
    const bool may_have_no_node = job.min_nodes == 0U && job.max_nodes.value_or(0) > 1;
    return items.is_ambiguous() || has_two_totals(job) || may_have_no_node;
}

bool has_foreign_gpus(const Submission& before, const Submission& after)
{
    const std::string_view prefix = gres_prefix(before);
    const auto is_foreign = [&](std::string_view item) {
        const bool is_own = !prefix.empty() && item.starts_with(prefix);
        if (item.starts_with("gres:") || item.starts_with("gres/")) {
            item.remove_prefix(5);
        }
        const std::string_view name = item.substr(0, item.find_first_of(":="));
        return !is_own && (name == "gpu" || name == "shard" || name == "mps");
    };
    return std::any_of(k_tres.begin(), k_tres.end(), [&](auto field) {
        const auto items = split(after.tres.*field, ",");
        return after.tres.*field != before.tres.*field &&
               std::any_of(items.begin(), items.end(), is_foreign);
    });
}

std::string no_ambiguous_gpus()
{
    return "Slurm may count these GPUs differently from the policy: request them once and in one "
           "way, as in --gres=gpu:2 or --gpus=k80:2";
}

} // namespace gpuq::policy
