// SPDX-License-Identifier: GPL-2.0-or-later
// Simulates a trace on a machine described in a text file, for tests/bench/simulate and
// tests/bench/fidelity. usage: sim_replay MACHINE TRACE [OUTCOMES]
// MACHINE has lines of a kind, a name and KEY=VALUE pairs; times are in seconds:
//   node n1 gpus=4 cpus=8 weight=1 model=k80 memory_mib=48000 features=fast,big leaf=1
//   qos short gpus_per_user=2 jobs_per_user=4 group_gpus=8 priority=10
//   partition main nodes=n1,n2 max_time=7200 tier=10 qos=short job_factor=1 grace=60
//   share lab user=ann shares=2
//   set all bf_interval=30
//   route all partitions=main+long short=main
// Nodes are in Slurm's order, which is by name; leaf is the number of their switch in
// topology.conf. grace marks a lent partition, whose jobs a higher tier requeues.
//
// Keys of `set` that correspond to slurm.conf (see sim/machine.h): bf_interval, bf_window,
// bf_resolution, bf_max_job_user, depth (bf_max_job_test), queue_depth (default_queue_depth),
// batch_sched_delay, one_reservation (bf_one_resv_per_job), age, fair_share, job_size, partition,
// qos (PriorityWeight...), max_age, half_life, calc_period, dampening (FairShareDampeningFactor
// without a fair tree), cpu_weight (weight of a CPU-second in fair share). Keys that describe the
// real run: release (1711 for 17.11), clock (Slurm's clock at the first submission, modulo an
// hour), calc_phase (from then to slurmctld's start, modulo calc_period), bf_phase_ms (from then to
// the first backfill cycle), bf_interval_ms, bf_test_us (from sdiag: mean backfill cycle divided by
// its mean depth), submission_ms, completion_ms, limit_check. Keys about the jobs: cpus_per_gpu,
// default_limit (for jobs without a limit), chain_limit (if set, jobs run as chains of links of
// this length), short_limit (limit of jobs that end within it; they are sent to the partitions of
// `route ... short=` and are not chained). Keys about failures of nodes: fail_every (of one node,
// on average), fail_down.
//
// The trace's column partition names the job's partitions (`a+b`) unless a line `route` does. The
// columns cpus (total), memory_mib (per node), features (`a+b`), qos and min_nodes (-N, if given)
// are read too; jobs may have no GPUs. If every job has a start_s, a line `real` compares the
// simulation with it. OUTCOMES receives one line per job.
#include "core/percentile.h"
#include "sim/measure.h"
#include "sim/outages.h"
#include "sim/simulate.h"
#include "sim/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>

namespace {

using namespace gpuq::sim;
using Columns = std::map<std::string, std::string>;

struct Bad {
    std::string what;
};

std::vector<std::string> cut(const std::string& text, char separator)
{
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        parts.push_back(part);
    }
    return parts;
}

template <typename Thing>
int index_of(const std::vector<Thing>& things, const std::string& name)
{
    for (std::size_t i = 0; i < things.size(); ++i) {
        if (things[i].name == name) {
            return static_cast<int>(i);
        }
    }
    throw Bad{"no such name: " + name};
}

class Setup {
public:
    Machine machine;
    std::vector<std::string> partitions; ///< for every job; empty: taken from the trace
    Seconds chain_limit{0};              ///< 0: no chains
    Seconds default_limit{0};
    int cpus_per_gpu = 1;
    Seconds short_limit{0}; ///< for jobs that end within it; 0: none
    std::vector<std::string> short_partitions;
    Failures failures{Seconds{0}, std::chrono::hours{4}}; ///< every 0 s: never

    void read(const std::string& line)
    {
        std::istringstream stream(line);
        std::string kind;
        std::string name;
        stream >> kind >> name;
        Columns columns;
        for (std::string word; stream >> word;) {
            const std::size_t equals = word.find('=');
            columns[word.substr(0, equals)] = word.substr(equals + 1);
        }
        const std::map<std::string, std::function<void()>> kinds = {
            {"node", [&] { node(name, columns); }},
            {"qos", [&] { qos(name, columns); }},
            {"partition", [&] { partition(name, columns); }},
            {"share", [&] { share(name, columns); }},
            {"set", [&] { settings(columns); }},
            {"route", [&] { route(columns); }},
        };
        const auto found = kinds.find(kind);
        if (found != kinds.end()) {
            found->second();
        } else if (!kind.empty() && kind[0] != '#') {
            throw Bad{"what is this: " + line};
        }
    }

private:
    static int number(const std::string& text) { return std::stoi(text); }

    void node(const std::string& name, const Columns& columns)
    {
        Node node;
        node.name = name;
        for (const auto& [key, value] : columns) {
            if (key == "model") {
                node.model = value;
            } else if (key == "features") {
                node.features = cut(value, ',');
            } else {
                (key == "gpus"         ? node.gpus
                 : key == "cpus"       ? node.cpus
                 : key == "memory_mib" ? node.memory_mib
                 : key == "weight"     ? node.weight
                 : key == "leaf"       ? node.leaf
                                       : throw Bad{"node: " + key}) = number(value);
            }
        }
        machine.nodes.push_back(node);
    }

    void qos(const std::string& name, const Columns& columns)
    {
        Qos qos;
        qos.name = name;
        const std::map<std::string, std::optional<int> Qos::*> limits = {
            {"gpus_per_user", &Qos::gpus_per_user},
            {"jobs_per_user", &Qos::jobs_per_user},
            {"group_gpus", &Qos::group_gpus},
        };
        for (const auto& [key, value] : columns) {
            if (key == "priority") {
                qos.priority = number(value);
            } else {
                qos.*limits.at(key) = number(value);
            }
        }
        machine.qos.push_back(qos);
    }

    void partition(const std::string& name, const Columns& columns)
    {
        Partition partition;
        partition.name = name;
        for (const auto& [key, value] : columns) {
            if (key == "nodes") {
                for (const std::string& node : cut(value, ',')) {
                    partition.nodes.push_back(index_of(machine.nodes, node));
                }
            } else if (key == "max_time") {
                partition.max_time = Seconds{number(value)};
            } else if (key == "tier") {
                partition.tier = number(value);
            } else if (key == "job_factor") {
                partition.job_factor = number(value);
            } else if (key == "grace") { // lent: a higher tier takes the nodes back
                partition.preempt = Preempt::requeue;
                partition.grace = Seconds{number(value)};
                machine.settings.preempts = true;
            } else if (key == "qos") {
                partition.qos = index_of(machine.qos, value);
            } else {
                throw Bad{"partition: " + key};
            }
        }
        machine.partitions.push_back(partition);
    }

    void share(const std::string& account, const Columns& columns)
    {
        Share share{.account = account};
        for (const auto& [key, value] : columns) {
            if (key == "user") {
                share.user = value;
            } else if (key == "shares") {
                share.shares = number(value);
            } else {
                throw Bad{"share: " + key};
            }
        }
        machine.shares.push_back(share);
    }

    void settings(const Columns& columns)
    {
        Settings& settings = machine.settings;
        const std::map<std::string, Seconds*> times = {
            {"bf_window", &settings.backfill.window},
            {"bf_resolution", &settings.backfill.resolution},
            {"batch_sched_delay", &settings.timing.batch_sched_delay},
            {"limit_check", &settings.timing.limit_check},
            {"clock", &settings.timing.clock},
            {"max_age", &settings.weights.max_age},
            {"calc_period", &settings.weights.calc_period},
            {"calc_phase", &settings.weights.calc_phase},
            {"half_life", &settings.weights.half_life},
            {"chain_limit", &chain_limit},
            {"default_limit", &default_limit},
            {"short_limit", &short_limit},
            {"fail_every", &failures.every},
            {"fail_down", &failures.down},
        };
        const std::map<std::string, double*> weights = {
            {"age", &settings.weights.age},           {"fair_share", &settings.weights.fair_share},
            {"job_size", &settings.weights.job_size}, {"partition", &settings.weights.partition},
            {"qos", &settings.weights.qos},           {"cpu_weight", &settings.cpu_weight},
        };
        for (const auto& [key, value] : columns) {
            if (times.count(key) != 0) {
                *times.at(key) = Seconds{number(value)};
            } else if (weights.count(key) != 0) {
                *weights.at(key) = number(value);
            } else if (key == "one_reservation") {
                settings.backfill.one_reservation_per_job = number(value) != 0;
            } else if (key == "cpus_per_gpu") {
                cpus_per_gpu = number(value);
            } else if (key == "bf_interval") {
                settings.backfill.interval = Seconds{number(value)};
            } else if (key == "bf_interval_ms") {
                settings.backfill.interval = std::chrono::milliseconds{number(value)};
            } else if (key == "bf_phase_ms") {
                settings.backfill.phase = std::chrono::milliseconds{number(value)};
            } else if (key == "submission_ms") {
                settings.timing.submission = std::chrono::milliseconds{number(value)};
            } else if (key == "completion_ms") {
                settings.timing.completion = std::chrono::milliseconds{number(value)};
            } else if (key == "bf_test_us") {
                settings.timing.backfill_test = std::chrono::microseconds{number(value)};
            } else if (key == "release") {
                settings.release = number(value);
            } else if (key == "bf_max_job_user") {
                settings.backfill.max_jobs_per_user = number(value);
            } else if (key == "queue_depth") {
                settings.timing.default_queue_depth = number(value);
            } else if (key == "dampening") {
                settings.weights.dampening = number(value);
            } else if (key == "depth") {
                settings.backfill.max_jobs_tested = number(value);
            } else {
                throw Bad{"set: " + key};
            }
        }
    }

    void route(const Columns& columns)
    {
        for (const auto& [key, value] : columns) {
            (key == "short" ? short_partitions : partitions) = cut(value, '+');
        }
    }
};

std::optional<std::chrono::milliseconds> milliseconds(std::optional<int> count)
{
    return count ? std::optional(std::chrono::milliseconds{*count}) : std::nullopt;
}

std::vector<int> indexes(const Machine& machine, const std::vector<std::string>& names)
{
    std::vector<int> result;
    for (const std::string& name : names) {
        result.push_back(index_of(machine.partitions, name));
    }
    return result;
}

std::vector<Job> jobs_of(const Setup& setup, const Trace& trace)
{
    std::vector<Job> jobs;
    jobs.reserve(trace.jobs.size());
    for (const TraceJob& from : trace.jobs) {
        Job job;
        job.id = jobs.size() + 1;
        job.submit = from.submit;
        job.duration = from.duration;
        job.submit_part = milliseconds(from.submit_ms);
        job.duration_part = milliseconds(from.duration_ms);
        job.limit = from.limit.value_or(setup.default_limit);
        job.gpus = from.gpus;
        job.nodes = from.nodes;
        job.cpus_per_gpu = setup.cpus_per_gpu;
        if (from.cpus > 0) {
            job.cpus_per_gpu = 0;
            job.nodes = std::max(1, from.nodes);
            job.cpus_per_node = (from.cpus + job.nodes - 1) / job.nodes;
        }
        job.memory_per_node_mib = from.memory_mib;
        job.min_nodes = from.min_nodes;
        job.features = cut(from.features, '+');
        job.model = from.model;
        if (!from.qos.empty()) {
            job.qos = index_of(setup.machine.qos, from.qos);
        }
        job.user = from.user.empty() ? from.partition : from.user;
        job.account = from.account.empty() ? "all" : from.account;
        const bool brief = setup.short_limit > Seconds{0} && from.duration <= setup.short_limit;
        if (brief) {
            job.limit = setup.short_limit;
        }
        job.partitions =
            indexes(setup.machine, brief && !setup.short_partitions.empty() ? setup.short_partitions
                                   : setup.partitions.empty() ? cut(from.partition, '+')
                                                              : setup.partitions);
        if (setup.chain_limit > Seconds{0} && !brief) {
            job.chain = Chain{.limit = setup.chain_limit, .partitions = job.partitions};
        }
        jobs.push_back(std::move(job));
    }
    return jobs;
}

void print(const char* name, const Waits& waits)
{
    fmt::print("{} runs {} never {} p50 {} p95 {} max {} mean {:.1f} mean_in_all {:.1f} within "
               "{:.4f}\n",
               name, waits.runs, waits.never, waits.p50.count(), waits.p95.count(),
               waits.max.count(), waits.mean, waits.mean_in_all, waits.within_target.value_or(1));
}

/// One line per job: ID, submission, start, end, partition, nodes of its first link.
void write(const Machine& machine, const Trace& trace, const std::vector<Job>& jobs,
           const Course& course, const std::string& file)
{
    std::vector<std::string> nodes(jobs.size());
    for (const Piece& piece : course.pieces) {
        for (std::size_t i = 0; piece.link == 1 && i < piece.nodes.size(); ++i) {
            nodes[piece.job] +=
                (i == 0 ? "" : "+") + machine.nodes[static_cast<std::size_t>(piece.nodes[i])].name;
        }
    }
    std::ofstream out(file);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const Outcome& outcome = course.outcomes[i];
        out << fmt::format("{},{},{},{},{},{}\n", trace.jobs[i].id, jobs[i].submit.count(),
                           outcome.start.count(), outcome.end.count(), outcome.partition, nodes[i]);
    }
}

/// The rank of each value; ties get their mean rank.
std::vector<double> ranks(const std::vector<Seconds>& values)
{
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<double> result(values.size());
    for (std::size_t i = 0; i < order.size();) {
        std::size_t j = i;
        while (j < order.size() && values[order[j]] == values[order[i]]) {
            ++j;
        }
        for (std::size_t k = i; k < j; ++k) {
            result[order[k]] = static_cast<double>(i + j - 1) / 2;
        }
        i = j;
    }
    return result;
}

double spearman(const std::vector<Seconds>& a, const std::vector<Seconds>& b)
{
    const std::vector<double> x = ranks(a);
    const std::vector<double> y = ranks(b);
    const double mean = static_cast<double>(x.size() - 1) / 2;
    double both = 0;
    double of_x = 0;
    double of_y = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        both += (x[i] - mean) * (y[i] - mean);
        of_x += (x[i] - mean) * (x[i] - mean);
        of_y += (y[i] - mean) * (y[i] - mean);
    }
    return both / std::sqrt(of_x * of_y);
}

Seconds p95(std::vector<Seconds> waits)
{
    std::sort(waits.begin(), waits.end());
    return gpuq::percentile(waits, 95);
}

/// Compares the simulation with the start times in the trace, if every job has one.
void print_against(const Trace& trace, const Course& course)
{
    std::vector<Seconds> real;
    std::vector<Seconds> simulated;
    std::vector<Seconds> real_waits;
    std::vector<Seconds> waits;
    Seconds real_end{0};
    Seconds end{0};
    double real_sum = 0;
    double sum = 0;
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        const TraceJob& job = trace.jobs[i];
        if (!job.start || course.outcomes[i].links == 0) {
            return;
        }
        real.push_back(*job.start);
        simulated.push_back(course.outcomes[i].start);
        real_waits.push_back(*job.start - job.submit);
        waits.push_back(simulated.back() - job.submit);
        real_sum += static_cast<double>(real_waits.back().count());
        sum += static_cast<double>(waits.back().count());
        real_end = std::max(real_end, *job.start + job.duration);
        end = std::max(end, course.outcomes[i].end);
    }
    if (real.size() < 2 || real_sum <= 0) {
        return;
    }
    const auto count = static_cast<double>(real.size());
    fmt::print("real mean {:.1f} mean_error {:+.4f} p95 {} p95_error {:+.4f} makespan {} "
               "makespan_error {:+.4f} spearman {:.4f}\n",
               real_sum / count, sum / real_sum - 1, p95(real_waits).count(),
               static_cast<double>(p95(waits).count()) /
                       std::max(1.0, static_cast<double>(p95(real_waits).count())) -
                   1,
               real_end.count(),
               static_cast<double>(end.count()) / static_cast<double>(real_end.count()) - 1,
               spearman(real, simulated));
}

int run(const std::vector<std::string>& arguments)
{
    Setup setup;
    std::ifstream file(arguments.at(0));
    for (std::string line; std::getline(file, line);) {
        setup.read(line);
    }
    const auto trace = read_trace(arguments.at(1), Which::all);
    if (!trace) {
        throw Bad{trace.error().text};
    }
    const std::vector<Job> jobs = jobs_of(setup, *trace);
    if (setup.failures.every > Seconds{0} && !jobs.empty()) {
        setup.machine.outages = outages_of(setup.machine, setup.failures, jobs.back().submit);
    }
    const std::clock_t begin = std::clock(); // CPU time: other processes do not count
    const auto course = simulate(setup.machine, jobs);
    const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!course) {
        throw Bad{course.error().text};
    }
    const Measures measures = measure(setup.machine, jobs, *course);
    fmt::print("seconds {:.3f}\nmain_passes {}\nbackfill_cycles {}\nbackfill_tests {}\n", took,
               course->effort.main_passes, course->effort.backfill_cycles,
               course->effort.backfill_tests);
    fmt::print("failed {}\nuse {:.4f}\nidle_while_waiting {:.4f}\nidle_while_allowed {:.4f}\n",
               measures.failed, measures.use, measures.idle_while_waiting,
               measures.idle_while_allowed);
    print("all", measures.all);
    print("short", measures.short_runs);
    print("long", measures.long_runs);
    print_against(*trace, *course);
    if (arguments.size() > 2) {
        write(setup.machine, *trace, jobs, *course, arguments[2]);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        return run({argv + 1, argv + argc});
    } catch (const Bad& bad) {
        std::cerr << "sim_replay: " << bad.what << '\n';
    } catch (const std::exception& problem) {
        std::cerr << "sim_replay: " << problem.what() << '\n';
    }
    return 1;
}
