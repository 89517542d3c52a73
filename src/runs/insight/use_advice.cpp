// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/use_advice.h"

#include "runs/insight/gpu_hours.h"

#include <fmt/format.h>

#include <cmath>

namespace gpuq {
namespace {

/// A shorter job is not representative of the next one.
constexpr std::chrono::seconds k_shortest{60};
/// Reading data and saving count as idle time, too.
constexpr double k_idle = 50;
constexpr double k_used_memory = 25;
/// Less unused memory than this harms no other job.
constexpr std::uint64_t k_small_memory_mib = 4096;

std::string jobs_text(int jobs)
{
    return jobs == 1 ? "1 job" : fmt::format("{} jobs", jobs);
}

double percent_of(double part, double whole)
{
    return 100 * part / whole;
}

/// Adds one piece of advice for all jobs whose GPUs were idle most of the time.
void on_idle_gpus(const std::vector<UseRecord>& records, std::vector<UseAdvice>& advice)
{
    GpuTime sum;
    int jobs = 0;
    for (const UseRecord& record : records) {
        const GpuTime time = gpu_time_of(record);
        const auto known = time.busy + time.idle;
        if (record.use.elapsed >= k_shortest && known >= k_shortest &&
            percent_of(double(time.idle.count()), double(known.count())) >= k_idle) {
            sum += time;
            ++jobs;
        }
    }
    if (jobs == 0) {
        return;
    }
    const double percent =
        percent_of(double(sum.idle.count()), double((sum.busy + sum.idle).count()));
    advice.push_back({UseAdvice::Code::idle_gpus, jobs, percent,
                      fmt::format("the GPUs of {} were idle for {:.0f} % of the measured time; "
                                  "gpuq show RUN shows details of each",
                                  jobs_text(jobs), std::floor(percent))});
}

void on_memory(const std::vector<UseRecord>& records, std::vector<UseAdvice>& advice)
{
    double used = 0;
    double asked = 0;
    int jobs = 0;
    for (const UseRecord& record : records) {
        // 0 means that Slurm took no sample.
        if (record.use.elapsed < k_shortest || !record.memory_mib ||
            record.most_memory_mib.value_or(0) == 0 || *record.memory_mib < k_small_memory_mib) {
            continue;
        }
        const auto most = double(*record.most_memory_mib);
        if (percent_of(most, double(*record.memory_mib)) <= k_used_memory) {
            used += most;
            asked += double(*record.memory_mib);
            ++jobs;
        }
    }
    if (jobs == 0) {
        return;
    }
    const double percent = percent_of(used, asked);
    advice.push_back(
        {UseAdvice::Code::unused_memory, jobs, percent,
         fmt::format("{} used {:.0f} % of the memory that {} had, as far as Slurm saw; with less "
                     "(--mem) jobs can start sooner",
                     jobs_text(jobs), std::ceil(percent), jobs == 1 ? "it" : "they")});
}

} // namespace

std::string_view word(UseAdvice::Code code)
{
    return code == UseAdvice::Code::idle_gpus ? "idle_gpus" : "unused_memory";
}

std::vector<UseAdvice> advice_on(const std::vector<UseRecord>& records)
{
    std::vector<UseAdvice> advice;
    on_idle_gpus(records, advice);
    on_memory(records, advice);
    return advice;
}

} // namespace gpuq
