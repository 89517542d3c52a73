// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/generated.h"

#include "govern/conf.h"
#include "govern/values.h"
#include "policy/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace gpuq::govern {
namespace {

constexpr std::string_view k_drains = " State=DRAIN";
constexpr std::string_view k_since = " no new job since ";

bool drains(const ConfLine& line)
{
    return line.text.find(k_drains) != std::string::npos;
}

/// The line with State=DRAIN, also of a closed pool, and without Default=YES: another partition is
/// the default now.
std::string leaving_line(const ConfLine& line)
{
    std::istringstream stream(line.text);
    std::string text;
    for (std::string word; stream >> word;) {
        text +=
            word == "Default=YES" || word == "State=DOWN" ? "" : (text.empty() ? "" : " ") + word;
    }
    return drains(line) ? text : text + std::string(k_drains);
}

/// The AllowQos value of each partition: all partitions of a queue have the same.
std::map<std::string, std::string> queues_of(const std::string& include)
{
    constexpr std::string_view k_key = "AllowQos=";
    std::map<std::string, std::string> queues;
    for (const ConfLine& line : lines_of(include)) {
        std::istringstream stream(line.text);
        for (std::string word; line.key == "partitionname" && stream >> word;) {
            if (word.starts_with(k_key)) {
                queues[line.value] = word.substr(k_key.size());
            }
        }
    }
    return queues;
}

bool is_of_queue(const QueuedJob& job, const std::string& partition,
                 const std::map<std::string, std::string>& queues)
{
    const auto queue = queues.find(partition);
    return std::any_of(job.partitions.begin(), job.partitions.end(), [&](const std::string& one) {
        const auto other = queues.find(one);
        return one == partition ||
               (queue != queues.end() && other != queues.end() && queue->second == other->second);
    });
}

} // namespace

std::set<std::string> partitions_of(const std::string& include)
{
    std::set<std::string> names;
    for (const ConfLine& line : lines_of(include)) {
        if (line.key == "partitionname") {
            names.insert(line.value);
        }
    }
    return names;
}

Leaving leaving_of(const std::string& include)
{
    Leaving leaving;
    for (const ConfLine& line : lines_of(include)) {
        if (line.key == "partitionname" && drains(line)) {
            const bool reported = line.comment.starts_with(k_since);
            leaving[line.value] = reported ? line.comment.substr(k_since.size()) : "";
        }
    }
    return leaving;
}

Leaving still_used(const std::string& include, const std::set<std::string>& unwanted,
                   const std::vector<QueuedJob>& jobs)
{
    const Leaving known = leaving_of(include);
    const auto queues = queues_of(include);
    std::string newest;
    for (const QueuedJob& job : jobs) {
        newest = std::max(newest, job.submitted);
    }
    Leaving leaving;
    for (const std::string& name : unwanted) {
        const auto found = known.find(name);
        const std::string since =
            found == known.end() || found->second.empty() ? newest : found->second;
        const bool used = std::any_of(jobs.begin(), jobs.end(), [&](const QueuedJob& job) {
            return job.submitted <= since && is_of_queue(job, name, queues);
        });
        if (used) {
            leaving[name] = since;
        }
    }
    return leaving;
}

std::string include_of(const std::vector<SlurmObject>& objects, const std::string& before,
                       const Leaving& leaving)
{
    std::string text = policy::slurm_conf_of(objects);
    if (lines_of(text).empty() && lines_of(before).empty()) {
        return before; // nothing to define: not even the file need exist
    }
    for (const ConfLine& line : lines_of(before)) {
        const auto found = leaving.find(line.value);
        if (line.key == "partitionname" && found != leaving.end()) {
            text += leaving_line(line) +
                    (found->second.empty() ? "" : fmt::format(" #{}{}", k_since, found->second)) +
                    "\n";
        }
    }
    return text;
}

std::set<std::string> qos_named_in(const std::string& include)
{
    std::set<std::string> names;
    for (const ConfLine& line : lines_of(include)) {
        std::istringstream stream(line.text);
        for (std::string word; stream >> word;) {
            if (word.starts_with("QOS=") || word.starts_with("AllowQos=")) {
                names.merge(as_set(word.substr(word.find('=') + 1)));
            }
        }
    }
    return names;
}

} // namespace gpuq::govern
