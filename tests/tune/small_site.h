// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/read.h"
#include "tune/problem.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuq::tune::testing {

/// One node is too little for the short runs, and three are too many for the long ones.
inline const std::string k_policy = "version: 1\n"
                                    "pools:\n"
                                    "  first:\n"
                                    "    nodes: n1            # for short runs\n"
                                    "    gpus: 2\n"
                                    "  main:\n"
                                    "    nodes: n[2-6]        # the rest\n"
                                    "    gpus: 2\n"
                                    "queues:\n"
                                    "  fast: {time: 2h, pools: first, wait: {p95: 10m}}\n"
                                    "  long: {time: 48h, pools: main}\n"
                                    "tests:\n"
                                    "  - name: two hours are fast\n"
                                    "    job: {gpus: 1, time: 2h}\n"
                                    "    expect: {queue: fast}\n";

inline PolicyFile file_of(const std::string& text)
{
    auto reading = policy::read_policy(text, "p.yaml");
    EXPECT_TRUE(reading && !has_errors(reading->findings));
    return {"p.yaml", text, reading->policy};
}

/// In the first two days of each week, four short runs every hour and a half, and a long one of ten
/// hours with every third of them.
inline sim::Trace trace_of(int weeks)
{
    using namespace std::chrono_literals;
    sim::Trace trace;
    const auto add = [&](Seconds submit, Seconds duration) {
        sim::TraceJob job;
        job.id = std::to_string(trace.jobs.size());
        job.submit = submit;
        job.duration = duration;
        trace.jobs.push_back(job);
    };
    for (Seconds begin{0}; begin < k_week * weeks; begin += k_week) {
        for (Seconds at{0}; at < 48h; at += 90min) {
            for (int i = 0; i < 4; ++i) {
                add(begin + at, 55min);
            }
            if (at % 270min == 0s) {
                add(begin + at, 10h);
            }
        }
    }
    return trace;
}

inline Jobs jobs_of(int weeks)
{
    return {"t.csv", trace_of(weeks), {}};
}

inline Problem problem(const std::string& text = k_policy, int weeks = 3,
                       const std::vector<Goal>& targets = {}, const std::vector<Goal>& keeps = {})
{
    auto made = problem_of(file_of(text), jobs_of(weeks), targets, keeps, {});
    EXPECT_TRUE(made) << made.error().text;
    return *std::move(made);
}

} // namespace gpuq::tune::testing
