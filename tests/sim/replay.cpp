// SPDX-License-Identifier: GPL-2.0-or-later
// Simulates a trace on a machine that a text file describes, for tests/bench/simulate and
// tests/bench/fidelity. usage: sim_replay MACHINE TRACE [OUTCOMES]
// MACHINE has lines of words: a kind, a name, then KEY=VALUE; times in seconds.
//   node n1 gpus=4 cpus=8 weight=1 model=k80
//   qos short gpus_per_user=2
//   partition main nodes=n1,n2 max_time=7200 tier=10 qos=short
//   share lab user=ann shares=2
//   set all bf_interval=30
// Of the trace the column partition names the job's partitions, `a+b`, or `*` in the first line
// `route all partitions=a+b`. OUTCOMES gets a line for each job.
#include "sim/measure.h"
#include "sim/simulate.h"
#include "sim/trace.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

namespace {

using namespace gpuq::sim;
using Words = std::map<std::string, std::string>;

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
    std::vector<std::string> partitions; ///< of every job; empty: as the trace says
    Seconds chain_limit{0};              ///< 0: no chains
    Seconds default_limit{0};
    int cpus_per_gpu = 1;
    Seconds short_limit{0}; ///< of jobs that would end within it, if not 0
    std::vector<std::string> short_partitions;

    void read(const std::string& line)
    {
        std::istringstream stream(line);
        std::string kind;
        std::string name;
        stream >> kind >> name;
        Words words;
        for (std::string word; stream >> word;) {
            const std::size_t equals = word.find('=');
            words[word.substr(0, equals)] = word.substr(equals + 1);
        }
        const std::map<std::string, std::function<void()>> kinds = {
            {"node", [&] { node(name, words); }},
            {"qos", [&] { qos(name, words); }},
            {"partition", [&] { partition(name, words); }},
            {"share", [&] { share(name, words); }},
            {"set", [&] { settings(words); }},
            {"route", [&] { route(words); }},
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

    void node(const std::string& name, const Words& words)
    {
        Node node;
        node.name = name;
        for (const auto& [key, value] : words) {
            (key == "gpus"     ? node.gpus
             : key == "cpus"   ? node.cpus
             : key == "weight" ? node.weight
                               : throw Bad{"node: " + key}) = number(value);
        }
        machine.nodes.push_back(node);
    }

    void qos(const std::string& name, const Words& words)
    {
        Qos qos;
        qos.name = name;
        const std::map<std::string, std::optional<int> Qos::*> limits = {
            {"gpus_per_user", &Qos::gpus_per_user},
            {"jobs_per_user", &Qos::jobs_per_user},
            {"group_gpus", &Qos::group_gpus},
        };
        for (const auto& [key, value] : words) {
            qos.*limits.at(key) = number(value);
        }
        machine.qos.push_back(qos);
    }

    void partition(const std::string& name, const Words& words)
    {
        Partition partition;
        partition.name = name;
        for (const auto& [key, value] : words) {
            if (key == "nodes") {
                for (const std::string& node : cut(value, ',')) {
                    partition.nodes.push_back(index_of(machine.nodes, node));
                }
            } else if (key == "max_time") {
                partition.max_time = Seconds{number(value)};
            } else if (key == "tier") {
                partition.tier = number(value);
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

    void share(const std::string& account, const Words& words)
    {
        Share share{.account = account};
        for (const auto& [key, value] : words) {
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

    void settings(const Words& words)
    {
        Settings& settings = machine.settings;
        const std::map<std::string, Seconds*> times = {
            {"bf_interval", &settings.backfill.interval},
            {"bf_window", &settings.backfill.window},
            {"bf_resolution", &settings.backfill.resolution},
            {"batch_sched_delay", &settings.timing.batch_sched_delay},
            {"limit_check", &settings.timing.limit_check},
            {"max_age", &settings.weights.max_age},
            {"calc_period", &settings.weights.calc_period},
            {"calc_phase", &settings.weights.calc_phase},
            {"half_life", &settings.weights.half_life},
            {"chain_limit", &chain_limit},
            {"default_limit", &default_limit},
            {"short_limit", &short_limit},
        };
        const std::map<std::string, double*> weights = {
            {"age", &settings.weights.age},
            {"fair_share", &settings.weights.fair_share},
            {"job_size", &settings.weights.job_size},
        };
        for (const auto& [key, value] : words) {
            if (times.count(key) != 0) {
                *times.at(key) = Seconds{number(value)};
            } else if (weights.count(key) != 0) {
                *weights.at(key) = number(value);
            } else if (key == "one_reservation") {
                settings.backfill.one_reservation_per_job = number(value) != 0;
            } else if (key == "cpus_per_gpu") {
                cpus_per_gpu = number(value);
            } else if (key == "submission_ms") {
                settings.timing.submission = std::chrono::milliseconds{number(value)};
            } else if (key == "completion_ms") {
                settings.timing.completion = std::chrono::milliseconds{number(value)};
            } else if (key == "depth") {
                settings.backfill.max_jobs_tested = number(value);
            } else {
                throw Bad{"set: " + key};
            }
        }
    }

    void route(const Words& words)
    {
        for (const auto& [key, value] : words) {
            (key == "short" ? short_partitions : partitions) = cut(value, '+');
        }
    }
};

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
    for (const TraceJob& from : trace.jobs) {
        Job job;
        job.id = jobs.size() + 1;
        job.submit = from.submit;
        job.duration = from.duration;
        job.limit = from.limit.value_or(setup.default_limit);
        job.gpus = from.gpus;
        job.nodes = from.nodes;
        job.cpus_per_gpu = setup.cpus_per_gpu;
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

/// A line for each job: id, submission, start, end, partition, nodes of its first link.
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

int run(const std::vector<std::string>& arguments)
{
    Setup setup;
    std::ifstream file(arguments.at(0));
    for (std::string line; std::getline(file, line);) {
        setup.read(line);
    }
    const auto trace = read_trace(arguments.at(1));
    if (!trace) {
        throw Bad{trace.error().text};
    }
    const std::vector<Job> jobs = jobs_of(setup, *trace);
    const auto begin = std::chrono::steady_clock::now();
    const auto course = simulate(setup.machine, jobs);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!course) {
        throw Bad{course.error().text};
    }
    const Measures measures = measure(setup.machine, jobs, *course);
    fmt::print("seconds {:.3f}\nmain_passes {}\nbackfill_cycles {}\nbackfill_tests {}\n",
               took.count(), course->effort.main_passes, course->effort.backfill_cycles,
               course->effort.backfill_tests);
    fmt::print("use {:.4f}\nidle_while_waiting {:.4f}\nidle_while_allowed {:.4f}\n", measures.use,
               measures.idle_while_waiting, measures.idle_while_allowed);
    print("all", measures.all);
    print("short", measures.short_runs);
    print("long", measures.long_runs);
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
