// SPDX-License-Identifier: GPL-2.0-or-later
// Compares forecasts of starts with the starts in a simulation, for tests/bench/forecast.
// usage: forecast_replay TRACE WORKLOAD BEHAVIOUR EVIDENCE [FIRST LAST]
//    or: forecast_replay --check TRACE
//    or: forecast_replay --speed JOBS [different]
// Jobs run on nodes with 4 GPUs and two with 2, in one queue of two days, first come, first served
// with backfill; longer jobs continue as chains. WORKLOAD: all jobs of the trace on 60 GPUs
// (`centre`), those of its second virtual cluster, which run long, on 28 (`long`), those of the
// third on 16 (`short`), or invented ones on 20: users with habits, who submit bursts of similar
// jobs in working hours (`campus`). BEHAVIOUR, how users state limits: `honest` (rounded up to ten
// minutes), `popular` (one to ten times the run time, rounded up to a popular value), `queue` (two
// days), or `mixed` (a third of each). Every three hours, all waiting jobs are forecast. EVIDENCE:
// `observed` (gpuq has observed the queue since the trace began), `uncorrected` (the same, but
// forecasts are not corrected by the starts before them) or `first` (it sees the queue for the
// first time). The forecasts made in the weeks FIRST to LAST are counted, by default those from
// the second one on. Output: figures, a name and a value in each line. --check: fails unless, in
// each workload, 50 +- 5 % start by p50 and 90 +- 3 % by p90, and 50 +- 12 % and 90 +- 6 %
// uncorrected.
#include "runs/queues/forecast.h"
#include "sim/simulate.h"
#include "sim/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

using gpuq::AllJobs;
using gpuq::Inventory;
using gpuq::JobId;
using gpuq::JobState;
using gpuq::sim::Seconds;
using namespace std::chrono_literals;

constexpr gpuq::Time k_zero{1'795'000'000s};
constexpr Seconds k_longest = 48h;
constexpr Seconds k_step = 3h;
constexpr Seconds k_kept = 5min; // MinJobAge

struct Size {
    std::string name;
    int gpus;
};

struct Workload {
    const char* name;
    const char* cluster; ///< virtual, in the trace; empty: all
    int nodes;           ///< with 4 GPUs
};
constexpr std::array k_workloads{Workload{"centre", "", 14}, Workload{"long", "103959", 6},
                                 Workload{"short", "11cb48", 3}, Workload{"campus", "", 4}};

std::vector<Size> nodes(const Workload& workload)
{
    std::vector<Size> list;
    for (int i = 1; i <= workload.nodes; ++i) {
        list.push_back({fmt::format("gpu{:02}", i), 4});
    }
    list.push_back({"visu1", 2});
    list.push_back({"visu2", 2});
    return list;
}

gpuq::sim::Machine machine(const Workload& workload)
{
    gpuq::sim::Machine made;
    gpuq::sim::Partition main;
    main.name = "main";
    main.max_time = k_longest;
    for (const Size& size : nodes(workload)) {
        gpuq::sim::Node node;
        node.name = size.name;
        node.gpus = node.cpus = size.gpus;
        node.weight = size.gpus == 4 ? 100 : 10;
        main.nodes.push_back(static_cast<int>(made.nodes.size()));
        made.nodes.push_back(node);
    }
    made.partitions.push_back(main);
    return made;
}

Inventory inventory(const Workload& workload)
{
    Inventory made;
    gpuq::Partition main;
    main.name = "main";
    main.max_time = std::chrono::duration_cast<std::chrono::minutes>(k_longest);
    made.partitions.push_back(main);
    for (const bool light : {true, false}) { // lowest weight first, as in Slurm's choice
        for (const Size& size : nodes(workload)) {
            if ((size.gpus == 2) == light) {
                gpuq::Node node;
                node.name = size.name;
                node.gpus = {{"", size.gpus, 0}};
                node.cpus = size.gpus;
                node.partitions = {"main"};
                made.nodes.push_back(node);
            }
        }
    }
    return made;
}

class Campus {
public:
    explicit Campus(int gpus)
        : m_work(0.6 * gpus * k_days * 86400)
    {
        for (User& user : m_users) {
            user = {1800 * std::exp(1.3 * normal()), 0.5 + uniform(),
                    std::array{1, 1, 1, 2, 4}[m_random() % 5]};
        }
        for (double& week : m_weeks) {
            week = std::exp(0.5 * normal());
        }
    }

    gpuq::sim::Trace trace()
    {
        while (m_work > 0) {
            add_session(
                m_users[std::min(m_random() % m_users.size(), m_random() % m_users.size())]);
        }
        std::stable_sort(
            m_trace.jobs.begin(), m_trace.jobs.end(),
            [](const auto& one, const auto& other) { return one.submit < other.submit; });
        return std::move(m_trace);
    }

private:
    static constexpr int k_days = 84;
    struct User {
        double run_time = 0, spread = 0;
        int gpus = 1;
    };

    double normal() { return std::normal_distribution<double>()(m_random); }
    double uniform() { return std::uniform_real_distribution<double>()(m_random); }

    void add_session(const User& user)
    {
        const auto day = static_cast<int>(uniform() * k_days);
        if ((day % 7 >= 5 && uniform() < 0.7) || 2 * uniform() > m_weeks[day / 7]) {
            return;
        }
        double at = 86400.0 * day + 3600 * (13 + 3 * normal());
        const double run_time = user.run_time * std::exp(0.8 * normal());
        const int count = 1 + static_cast<int>(-6 * std::log(1 - uniform()));
        for (int i = 0; i < count; ++i) {
            const bool fails = uniform() < 0.12;
            add_job(at, fails ? 20 + 60 * uniform() : run_time * std::exp(user.spread * normal()),
                    user.gpus);
            at += uniform() < 0.7 ? 2 : 3600 * uniform();
        }
    }

    void add_job(double at, double duration, int gpus)
    {
        gpuq::sim::TraceJob job;
        job.submit = Seconds(static_cast<long>(std::max(0.0, at)));
        job.duration = Seconds(static_cast<long>(std::clamp(duration, 5.0, 48 * 3600.0)));
        job.gpus = gpus;
        m_work -= static_cast<double>(job.duration.count()) * gpus;
        m_trace.jobs.push_back(job);
    }

    std::mt19937_64 m_random{1};
    double m_work = 0; ///< that is left, in GPU-seconds
    std::array<User, 15> m_users{};
    std::array<double, k_days / 7> m_weeks{};
    gpuq::sim::Trace m_trace;
};

gpuq::Result<gpuq::sim::Trace> trace_of(const Workload& workload, const std::string& file)
{
    if (workload.name == std::string("campus")) {
        return Campus(4 * workload.nodes + 4).trace();
    }
    auto trace = gpuq::sim::read_trace(file);
    if (trace && *workload.cluster != '\0') {
        std::erase_if(trace->jobs,
                      [&](const auto& job) { return job.partition != workload.cluster; });
    }
    return trace;
}

Seconds stated(Seconds duration, std::string behaviour, std::mt19937_64& random)
{
    if (behaviour == "mixed") {
        behaviour = std::array{"honest", "popular", "queue"}[random() % 3];
    }
    if (behaviour == "queue") {
        return k_longest;
    }
    const double factor =
        behaviour == "popular" ? 1 + std::exponential_distribution<double>(0.5)(random) : 1;
    const auto least = std::chrono::ceil<std::chrono::seconds>(std::max<Seconds>(duration, 1s) *
                                                               std::min(factor, 10.0));
    if (behaviour == "honest") {
        return std::min<Seconds>((least + 599s) / 600s * 600s, k_longest);
    }
    for (const Seconds limit :
         std::initializer_list<Seconds>{10min, 30min, 1h, 2h, 4h, 8h, 12h, 24h}) {
        if (least <= limit) {
            return limit;
        }
    }
    return k_longest;
}

std::vector<gpuq::sim::Job> jobs_of(const gpuq::sim::Trace& trace, const std::string& behaviour)
{
    std::mt19937_64 random(1);
    std::vector<gpuq::sim::Job> jobs;
    for (const gpuq::sim::TraceJob& one : trace.jobs) {
        gpuq::sim::Job job;
        job.id = jobs.size() + 1;
        job.submit = one.submit;
        job.duration = one.duration;
        job.gpus = one.gpus;
        job.cpus_per_gpu = 1;
        job.limit = stated(one.duration, behaviour, random);
        job.partitions = {0};
        job.chain = gpuq::sim::Chain{k_longest, 0s, {0}, 0s, 0s};
        jobs.push_back(job);
    }
    return jobs;
}

/// A job that ran, as Slurm shows it before, during and after its run.
struct Ran {
    Seconds eligible, start, end;
    gpuq::Job job; ///< running
};

std::vector<Ran> runs_of(const Workload& workload, const std::vector<gpuq::sim::Job>& jobs,
                         const gpuq::sim::Course& course)
{
    const auto names = nodes(workload);
    std::vector<Ran> list;
    for (const gpuq::sim::Piece& piece : course.pieces) {
        const Seconds limit = piece.link == 1 ? jobs[piece.job].limit : k_longest;
        Ran ran{piece.eligible, piece.start, piece.end, {}};
        ran.job.partition = "main";
        ran.job.walltime = std::chrono::ceil<std::chrono::minutes>(limit);
        ran.job.gpus = jobs[piece.job].gpus;
        ran.job.size.nodes = static_cast<int>(piece.nodes.size());
        ran.job.size.cpus = ran.job.gpus;
        ran.job.size.gpus = {{"", ran.job.gpus}};
        for (std::size_t i = 0; i < piece.nodes.size(); ++i) {
            const std::string& name = names[static_cast<std::size_t>(piece.nodes[i])].name;
            ran.job.nodes += (i == 0 ? "" : ",") + name;
            ran.job.held.whole.push_back({name, "", piece.gpus[i]});
        }
        list.push_back(ran);
    }
    std::stable_sort(list.begin(), list.end(), [](const Ran& one, const Ran& other) {
        return one.eligible < other.eligible;
    });
    for (std::size_t i = 0; i < list.size(); ++i) {
        list[i].job.id = JobId{static_cast<std::uint32_t>(i + 1)};
    }
    return list;
}

/// The jobs that Slurm shows at `now`: those that ended after `since` as well.
AllJobs shown(const std::vector<Ran>& runs, Seconds since, Seconds now)
{
    AllJobs all;
    for (const Ran& ran : runs) {
        if (ran.eligible > now) {
            break;
        }
        if (ran.end <= since) {
            continue;
        }
        gpuq::Job job = ran.job;
        job.submitted_at = k_zero + ran.eligible;
        if (ran.start > now) {
            job.state = JobState::pending;
            job.reason = "Priority";
            job.priority = 1;
            job.nodes.clear();
            job.held.whole.clear();
        } else {
            job.state = ran.end > now ? JobState::running : JobState::completed;
            job.started_at = k_zero + ran.start;
            job.ends_at = ran.end > now ? *job.started_at + *job.walltime : k_zero + ran.end;
        }
        all.jobs.push_back(std::move(job));
    }
    return all;
}

/// CPU time: other processes do not count.
double milliseconds_since(std::clock_t begin)
{
    return 1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

struct Tally {
    std::size_t forecasts = 0, by_p50 = 0, by_p90 = 0, moments = 0;
    std::set<JobId> jobs;
    std::size_t first_by_p50 = 0, first_by_p90 = 0; ///< of the first forecast for each job
    double moments_p50 = 0, moments_p90 = 0;        ///< sums of the shares
    std::vector<double> widths;                     ///< p90 over p50
    double slowest = 0;                             ///< milliseconds of CPU time
};

void compare(Tally& tally, const gpuq::StartForecasts& forecasts, const std::vector<Ran>& runs,
             gpuq::Time now)
{
    double p50 = 0;
    double p90 = 0;
    for (const auto& [id, forecast] : forecasts) {
        const gpuq::Time start = k_zero + runs[id.value - 1].start;
        p50 += start <= forecast.p50.value() ? 1 : 0;
        p90 += start <= forecast.p90.value() ? 1 : 0;
        if (tally.jobs.insert(id).second) {
            tally.first_by_p50 += start <= *forecast.p50 ? 1 : 0;
            tally.first_by_p90 += start <= *forecast.p90 ? 1 : 0;
        }
        tally.widths.push_back(std::chrono::duration<double>(*forecast.p90 - now) /
                               std::max<std::chrono::duration<double>>(*forecast.p50 - now, 60s));
    }
    const auto count = static_cast<double>(forecasts.size());
    tally.forecasts += forecasts.size();
    tally.by_p50 += static_cast<std::size_t>(p50);
    tally.by_p90 += static_cast<std::size_t>(p90);
    tally.moments += 1;
    tally.moments_p50 += p50 / count;
    tally.moments_p90 += p90 / count;
}

std::set<JobId> pending_in(const AllJobs& all)
{
    std::set<JobId> ids;
    for (const gpuq::Job& job : all.jobs) {
        if (job.state == JobState::pending) {
            ids.insert(job.id);
        }
    }
    return ids;
}

struct Weeks {
    int first = 2;
    int last = 1000;
    bool has(Seconds at) const { return at >= (first - 1) * 7 * 24h && at < last * 7 * 24h; }
};

/// Reports an error, and returns nothing.
template <class T>
std::optional<T> value_of(gpuq::Result<T> found)
{
    if (!found) {
        std::fprintf(stderr, "forecast_replay: %s\n", found.error().text.c_str());
        return std::nullopt;
    }
    return *std::move(found);
}

std::optional<Tally> replay(const Workload& workload, const std::string& file,
                            const std::string& behaviour, const std::string& evidence, Weeks weeks)
{
    const bool observed = evidence != "first";
    const auto trace = value_of(trace_of(workload, file));
    const auto jobs = trace ? jobs_of(*trace, behaviour) : std::vector<gpuq::sim::Job>();
    const auto course = value_of(gpuq::sim::simulate(machine(workload), jobs));
    if (!trace || !course) {
        return std::nullopt;
    }
    const std::vector<Ran> runs = runs_of(workload, jobs, *course);
    const Inventory nodes = inventory(workload);
    Tally tally;
    gpuq::RunTimes times;
    for (Seconds now = k_step; now < runs.back().eligible; now += k_step) {
        times = observed ? times : gpuq::RunTimes();
        for (Seconds at = observed ? now - k_step + k_kept : now; at <= now; at += k_kept) {
            gpuq::observe(times, shown(runs, at - k_kept, at).jobs, k_zero + at);
        }
        const AllJobs all = shown(runs, now, now);
        const std::set<JobId> wanted = pending_in(all);
        if (wanted.empty()) {
            continue;
        }
        const std::clock_t begin = std::clock();
        const auto found = gpuq::forecast_starts(wanted, all, nodes, times, k_zero + now);
        const double took = milliseconds_since(begin);
        if (evidence != "uncorrected") {
            gpuq::note_forecasts(times.calibration, found, k_zero + now);
        }
        if (weeks.has(now)) {
            tally.slowest = std::max(tally.slowest, took);
            compare(tally, found, runs, k_zero + now);
        }
    }
    std::sort(tally.widths.begin(), tally.widths.end());
    return tally;
}

double percent(double part, std::size_t all)
{
    return 100 * part / static_cast<double>(all);
}

void print(const Tally& tally)
{
    const auto part = [](std::size_t count, std::size_t all) {
        return percent(static_cast<double>(count), all);
    };
    fmt::print("forecasts {}\nby_p50 {:.1f}\nby_p90 {:.1f}\n", tally.forecasts,
               part(tally.by_p50, tally.forecasts), part(tally.by_p90, tally.forecasts));
    fmt::print("jobs {}\nfirst_by_p50 {:.1f}\nfirst_by_p90 {:.1f}\n", tally.jobs.size(),
               part(tally.first_by_p50, tally.jobs.size()),
               part(tally.first_by_p90, tally.jobs.size()));
    fmt::print("moments {}\nmoments_by_p50 {:.1f}\nmoments_by_p90 {:.1f}\n", tally.moments,
               percent(tally.moments_p50, tally.moments),
               percent(tally.moments_p90, tally.moments));
    fmt::print("p90_over_p50 {:.2f}\nslowest_ms {:.1f}\n", tally.widths[tally.widths.size() / 2],
               tally.slowest);
}

bool holds(const Workload& workload, const std::string& file, const std::string& behaviour,
           const std::string& evidence, double most_50, double most_90)
{
    const auto tally = replay(workload, file, behaviour, evidence, Weeks{3});
    if (!tally || tally->moments < 100) {
        return false;
    }
    const double p50 = percent(tally->moments_p50, tally->moments);
    const double p90 = percent(tally->moments_p90, tally->moments);
    fmt::print("{} {} {}: {:.1f} % by p50, {:.1f} % by p90, at {} moments\n", workload.name,
               behaviour, evidence, p50, p90, tally->moments);
    return std::abs(p50 - 50) <= most_50 && std::abs(p90 - 90) <= most_90;
}

/// Returns the exit status.
int check(const std::string& file)
{
    bool all_hold = true;
    for (const Workload& workload : k_workloads) {
        all_hold = holds(workload, file, "queue", "observed", 5, 3) && all_hold;
        all_hold = holds(workload, file, "honest", "uncorrected", 12, 6) && all_hold;
    }
    return all_hold ? 0 : 1;
}

/// Jobs of many sizes and limits, pending on 100 full nodes. `all_differ`: hardly two of them have
/// the same request.
int speed(int count, bool all_differ)
{
    std::mt19937_64 random(1);
    Inventory nodes;
    nodes.partitions.emplace_back().name = "main";
    AllJobs all;
    const std::array limits{10min, 30min, 60min, 120min, 240min, 720min, 1440min, 2880min};
    for (int i = 0; i < 100; ++i) {
        gpuq::Node node;
        node.name = fmt::format("n{:02}", i);
        node.gpus = {{"a100", 8, 8}};
        node.cpus = 64;
        node.memory_mib = 512 << 10;
        node.partitions = {"main"};
        nodes.nodes.push_back(node);
    }
    const auto add = [&](int gpus) -> gpuq::Job& {
        gpuq::Job job;
        job.id = JobId{static_cast<std::uint32_t>(all.jobs.size() + 1)};
        job.partition = "main";
        job.walltime = limits[random() % limits.size()];
        job.size.cpus = 8 * gpus;
        job.size.memory_mib = static_cast<std::uint64_t>(gpus) << 15;
        job.size.gpus = {{"", gpus}};
        if (all_differ) {
            job.walltime = std::chrono::minutes(1 + random() % 2880);
            job.size.memory_mib -= random() % 4096;
        }
        all.jobs.push_back(job);
        return all.jobs.back();
    };
    for (int i = 0; i < 400; ++i) {
        gpuq::Job& job = add(2);
        job.state = JobState::running;
        job.nodes = fmt::format("n{:02}", i / 4);
        job.held.whole = {{job.nodes, "a100", 2}};
        job.started_at = k_zero - std::chrono::minutes(random() % 10);
        job.ends_at = *job.started_at + *job.walltime;
    }
    for (int i = 0; i < count; ++i) {
        const int gpus = std::array{1, 1, 1, 1, 1, 1, 2, 2, 4, 8}[random() % 10];
        gpuq::Job& job = add(gpus);
        job.state = JobState::pending;
        job.reason = "Priority";
        job.priority = static_cast<std::uint32_t>(1 + random() % 10000);
    }
    const auto last = std::min_element(
        all.jobs.begin() + 400, all.jobs.end(),
        [](const gpuq::Job& one, const gpuq::Job& other) { return one.priority < other.priority; });
    const std::clock_t begin = std::clock();
    const auto found = gpuq::forecast_starts({last->id}, all, nodes, {}, k_zero);
    const double took = milliseconds_since(begin);
    fmt::print("milliseconds {:.0f}\np50_hours {:.1f}\np90_hours {:.1f}\n", took,
               std::chrono::duration<double>(*found.begin()->second.p50 - k_zero) / 1h,
               std::chrono::duration<double>(*found.begin()->second.p90 - k_zero) / 1h);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() >= 2 && arguments[0] == "--speed") {
        return speed(std::stoi(arguments[1]), arguments.size() > 2);
    }
    if (arguments.size() == 2 && arguments[0] == "--check") {
        return check(arguments[1]);
    }
    const auto workload =
        std::find_if(k_workloads.begin(), k_workloads.end(), [&](const Workload& one) {
            return arguments.size() > 1 && one.name == arguments[1];
        });
    if ((arguments.size() != 4 && arguments.size() != 6) || workload == k_workloads.end()) {
        std::fprintf(stderr, "usage: forecast_replay TRACE centre|long|short|campus BEHAVIOUR "
                             "observed|uncorrected|first [FIRST LAST]\n");
        return 2;
    }
    const Weeks weeks =
        arguments.size() == 4 ? Weeks() : Weeks{std::stoi(arguments[4]), std::stoi(arguments[5])};
    const auto tally = replay(*workload, arguments[0], arguments[2], arguments[3], weeks);
    if (!tally) {
        return 1;
    }
    print(*tally);
    return 0;
}
