// SPDX-License-Identifier: GPL-2.0-or-later
#include "lua/submit_script.h"
#include "policy/lua.h"
#include "policy/read.h"
#include "random_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

// For tests/bench/policy: decision_times POLICY JOBS. Measures the time of a policy's
// job_submit.lua for random jobs, and that of a script that accepts every job: the cost of any
// job_submit.lua at a site. The two alternate, so that both run under the same machine load. Prints
// `NAME p50 P50 p99 P99 max MAX` in microseconds, including the time to pass the job to Lua.

using namespace gpuq;

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* k_empty =
    "function slurm_job_submit(job, parts, uid) return slurm.SUCCESS end\n"
    "function slurm_job_modify(job, rec, parts, uid) return 0 end\n";

double time_of(SubmitScript& script, const ScriptFields& fields,
               const std::vector<std::string>& reservations)
{
    const auto begin = Clock::now();
    if (!script.submit(fields, reservations)) {
        throw std::runtime_error("the script raised");
    }
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void print(const char* name, std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    const auto at = [&times](double part) {
        return times[std::min(times.size() - 1,
                              static_cast<std::size_t>(part * double(times.size())))];
    };
    fmt::print("{} p50 {:.2f} p99 {:.2f} max {:.2f}\n", name, at(0.5), at(0.99), times.back());
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3) {
        fmt::print(stderr, "usage: decision_times POLICY JOBS\n");
        return 2;
    }
    std::ifstream file(argv[1]);
    std::ostringstream text;
    text << file.rdbuf();
    const auto reading = policy::read_policy(text.str(), argv[1]);
    if (!reading) {
        fmt::print(stderr, "{}\n", reading.error().text);
        return 1;
    }
    const policy::Rules rules(reading->policy);
    const auto script = *lua::load_submit_script(policy::job_submit_lua(rules.policy()));
    const auto empty = *lua::load_submit_script(k_empty);
    policy::RandomJobs jobs(rules, 1);
    std::vector<double> ours;
    std::vector<double> nothing;
    for (int i = std::stoi(argv[2]); i > 0; --i) {
        const ScriptFields fields = policy::fields_of(jobs.job());
        const auto on = jobs.courses_on();
        ours.push_back(time_of(*script, fields, on));
        nothing.push_back(time_of(*empty, fields, on));
    }
    print("policy", std::move(ours));
    print("empty", std::move(nothing));
}
