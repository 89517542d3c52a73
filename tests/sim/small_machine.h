// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/simulate.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace gpuq::sim::small {

using namespace std::chrono_literals;

/// `nodes` nodes with `gpus` GPUs each in one partition, main, with a limit of two days.
inline Machine one_partition(int nodes, int gpus)
{
    Machine machine;
    Partition main{.name = "main", .max_time = 48h, .default_time = 48h};
    for (int i = 0; i < nodes; ++i) {
        machine.nodes.push_back({.name = "n" + std::to_string(i), .gpus = gpus});
        main.nodes.push_back(i);
    }
    machine.partitions.push_back(main);
    machine.settings.timing.submission = 0ms;
    machine.settings.timing.completion = 0ms;
    machine.settings.timing.batch_sched_delay = Seconds{0};
    return machine;
}

/// A job in main whose limit equals its duration.
inline Job job(std::uint64_t id, Seconds submit, Seconds duration, int gpus,
               const std::string& user = "alice")
{
    Job made;
    made.id = id;
    made.submit = submit;
    made.duration = duration;
    made.limit = duration;
    made.gpus = gpus;
    made.user = user;
    made.account = "lab";
    made.partitions = {0};
    return made;
}

inline Course course_of(const Machine& machine, const std::vector<Job>& jobs)
{
    auto course = simulate(machine, jobs);
    EXPECT_TRUE(course) << (course ? "" : course.error().text);
    return course ? *course : Course{};
}

inline std::vector<std::int64_t> starts(const Course& course)
{
    std::vector<std::int64_t> result;
    for (const Outcome& outcome : course.outcomes) {
        result.push_back(outcome.links > 0 ? outcome.start.count() : -1);
    }
    return result;
}

/// A generated week: jobs of all sizes by five users, some with limits far too long.
inline std::vector<Job> busy_week(unsigned seed, int count, int most_gpus)
{
    std::mt19937 random(seed);
    const auto pick = [&](int most) { return static_cast<int>(random() % unsigned(most)); };
    std::vector<Job> jobs;
    Seconds now{0};
    for (int i = 0; i < count; ++i) {
        now += Seconds{pick(900)};
        const Seconds duration{pick(10) < 7 ? 30 + pick(3000) : 3600 + pick(60000)};
        Job made = job(static_cast<std::uint64_t>(i + 1), now, duration,
                       pick(4) == 0 ? 1 + pick(most_gpus) : 1, "user" + std::to_string(pick(5)));
        made.limit = pick(2) == 0 ? Seconds{duration + 60s} : Seconds{48h};
        jobs.push_back(made);
    }
    return jobs;
}

} // namespace gpuq::sim::small
