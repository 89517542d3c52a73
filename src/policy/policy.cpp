// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/policy.h"

#include <algorithm>

namespace gpuq::policy {
namespace {

template <typename T>
const T* named(const std::vector<T>& list, const std::string& name)
{
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const T& one) { return one.name == name; });
    return found == list.end() ? nullptr : &*found;
}

} // namespace

std::string stored_account(std::string name)
{
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return name;
}

Maybe<int> Limits::most_gpus_of_a_job() const
{
    Maybe<int> most;
    for (const Maybe<int>& one : {job.gpus, user.gpus, account.gpus, all.gpus}) {
        if (one && (!most || one->value < most->value)) {
            most = one;
        }
    }
    return most;
}

Maybe<int> Limits::most_shares_of_a_job() const
{
    Maybe<int> most;
    for (const Maybe<int>& one : {job.shares, user.shares, account.shares, all.shares}) {
        if (one && (!most || one->value < most->value)) {
            most = one;
        }
    }
    return most;
}

bool Limits::has_soft() const
{
    return user.soft_gpus || account.soft_gpus;
}

int Pool::gpus_per_node() const
{
    int count = 0;
    for (const GpuCount& gpu : gpus.value) {
        count += gpu.count;
    }
    return count;
}

bool Pool::has_model(const std::string& model) const
{
    return gpus.value.empty() ||
           std::any_of(gpus.value.begin(), gpus.value.end(), [&](const GpuCount& gpu) {
               return gpu.model.empty() || gpu.model == model;
           });
}

bool Pool::has_models() const
{
    return !gpus.value.empty() &&
           std::none_of(gpus.value.begin(), gpus.value.end(),
                        [](const GpuCount& gpu) { return gpu.model.empty(); });
}

bool Pool::has_node(const std::string& node) const
{
    const auto& all = nodes.value;
    return all == std::vector<std::string>{"ALL"} ||
           std::find(all.begin(), all.end(), node) != all.end();
}

bool Pool::has_some_of(const Course& course) const
{
    return std::any_of(course.nodes.value.begin(), course.nodes.value.end(),
                       [&](const std::string& node) { return has_node(node); });
}

const Pool* Policy::pool(const std::string& name) const
{
    return named(pools, name);
}

const Queue* Policy::queue(const std::string& name) const
{
    return named(queues, name);
}

const GpuModel* Policy::model(const std::string& name) const
{
    return named(gpus, name);
}

const Queue* Policy::sweep_queue() const
{
    const auto found = std::find_if(queues.begin(), queues.end(), is_for_sweeps);
    return found == queues.end() ? nullptr : &*found;
}

bool is_for_sweeps(const Queue& queue)
{
    return queue.through && queue.through->value == "sweep";
}

} // namespace gpuq::policy
