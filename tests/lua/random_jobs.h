// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/decide.h"

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace gpuq::policy {

/// Random jobs: mostly as users submit them, some absurd.
class RandomJobs {
    using Strings = std::vector<std::string>;

public:
    RandomJobs(const Rules& rules, unsigned seed)
        : m_random(seed)
    {
        for (const auto& queue : rules.queues()) {
            for (const QueuePartition& queue_partition : queue.queue_partitions) {
                m_partitions.push_back(queue_partition.partition);
            }
            m_qos.push_back(queue.qos);
        }
        for (const GpuModel& model : rules.policy().gpus) {
            m_models.push_back(model.name);
        }
        for (const Course& course : rules.policy().courses) {
            m_courses.push_back(course.name);
        }
    }

    Submission job()
    {
        Submission job;
        job.user_name = pick({"alice", "lena", "student1", ""});
        job.account =
            pick({"physics", "lab", "LAB", "visu", "course-dl", "ml-course", "staff", ""});
        job.comment = pick({"gpuq:0a1b", "gpuq:0a1b:2", "gpuq", "my gpuq:0a1b", "GPUQ:", "",
                            "gpuq:0a1b:sweep", "gpuq:0a1b:2:sweep", "gpuq:0a1b:sweep busy=1",
                            "gpuq:0a1b busy:sweep", "gpuq:0a1b:sweeps", ":sweep"});
        if (one_in(20)) {
            job.het_job_offset = one_in(2) ? 0 : 1;
        }
        job.tres.bound = one_in(20);
        if (one_in(3)) {
            job.partition = list(m_partitions);
        }
        if (one_in(10)) {
            job.qos = one_in(2) ? pick(m_qos) : "normal";
        }
        if (one_in(20)) {
            job.reservation = "other";
        }
        if (one_in(5)) { // a typical job
            job.partition.reset();
            job.time_limit = number({1, 30, 60});
            job.tres.per_node = pick({"gres:gpu:1", "gres:gpu:2", "gres:shard:1", "gres:shard:2"});
            return job;
        }
        job.time_limit =
            number({0, 1, 30, 60, 61, 120, 121, 720, 721, 1440, 2880, 2881, k_unlimited});
        job.min_nodes = number({0, 1, 2, 3, 5, 16, 1000});
        job.max_nodes = one_in(3) ? number({0, 1, 2, 4, 16, 1000, 4000000000}) : std::nullopt;
        if (one_in(3)) {
            job.num_tasks = number({0, 1, 4, 7, 128, 4000000000});
            job.ntasks_per_node = number({0, 1, 2, 8});
            job.sockets_per_node = number({0, 1, 2});
            job.ntasks_per_tres = one_in(3) ? number({0, 1, 2, 5}) : std::nullopt;
        }
        for (std::string* tres :
             {&job.tres.per_job, &job.tres.per_node, &job.tres.per_task, &job.tres.per_socket}) {
            if (one_in(3)) {
                *tres = this->tres();
            }
        }
        if (one_in(5)) {
            job.min_cpus = number({0, 1, 4, 5, 16, 17, 32, 4000000000});
            job.cpus_per_task = number({0, 1, 4, 5, 8, 65533});
            job.pn_min_cpus = number({0, 1, 4, 16, 17});
            job.tres.cpus = one_in(4) ? pick({"gres:gpu:4", "gpu:5", "gres:gpu:p100:4"}) : "";
        }
        if (one_in(5)) {
            job.min_mem_per_node = number({0, 1, 16384, 16385, 32768, 65536, 131073, 4294967293});
            job.min_mem_per_cpu = number({0, 1, 4096, 4097, 8192, 4294967293});
            job.tres.mem = one_in(4) ? pick({"gres:gpu:16384", "gres:gpu:16385", "gpu:0"}) : "";
        }
        if (one_in(5)) {
            job.threads_per_core = number({0, 1, 2, 4, 65535});
            job.ntasks_per_core = number({0, 1, 2, 3, 65535});
        }
        if (one_in(30)) {
            job.core_spec = number({0, 1, 2});
            job.thread_spec = number({0, 1, 2});
        }
        if (one_in(10)) {
            job.shared = number({0, 1, 2, 3, 65533});
        }
        return job;
    }

    Strings courses_on()
    {
        return m_courses.empty() || one_in(2) ? Strings{} : Strings{pick(m_courses)};
    }
    /// Sorted by name, as the script considers them.
    std::vector<Reserved> reserved()
    {
        std::vector<Reserved> list;
        for (const char* name : {"gpuq:a:1", "gpuq:b:2"}) {
            if (one_in(3)) {
                list.push_back({name, one_in(5) ? "gone" : pick(m_partitions),
                                one_in(2) ? Strings{"alice", "lena"} : Strings{"student1"}});
            }
        }
        return list;
    }
    bool one_in(unsigned many) { return m_random() % many == 0; }

private:
    std::string pick(const Strings& arguments)
    {
        return arguments.empty() ? "none" : arguments[m_random() % arguments.size()];
    }

    std::optional<std::uint32_t> number(const std::vector<std::uint32_t>& numbers)
    {
        return one_in(2) ? std::nullopt : std::optional(numbers[m_random() % numbers.size()]);
    }

    std::string list(const Strings& names)
    {
        std::string text =
            one_in(15) ? pick({"cpu", "", "calibration ", "Calibration"}) : pick(names);
        while (one_in(3)) {
            text += "," + (one_in(8) ? pick({"cpu", ""}) : pick(names));
        }
        return text;
    }

    std::string tres()
    {
        std::string text;
        do {
            const std::string model =
                one_in(2) ? ""
                          : (one_in(6) ? pick({"a100", "x y", "", "3g.20gb"}) : pick(m_models));
            const std::string separator = one_in(8) ? "=" : ":";
            text += text.empty() ? "" : ",";
            text += pick({"gres:", "gres:", "gres/", "", "GRES:"});
            text += pick({"gpu", "gpu", "gpu", "gpu", "gpu", "gpu", one_in(3) ? "shard" : "gpu",
                          one_in(3) ? "mps" : "gpu", "gpus", "shards"});
            text += model.empty() ? "" : ":" + model;
            text += one_in(5) ? ""
                              : separator + pick({"1", "2", "4", "5", "8", "0", "16", "1k",
                                                  "999999999999", "-1", "x", "", "2:3"});
        } while (one_in(4));
        return text;
    }

    std::mt19937 m_random;
    Strings m_partitions, m_qos, m_models, m_courses;
};

} // namespace gpuq::policy
