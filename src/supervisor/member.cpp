// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/member.h"

#include "core/exit_status.h"
#include "core/number.h"
#include "io/signal_descriptor.h"
#include "io/subprocess.h"
#include "log/log.h"
#include "supervisor/base/context.h"
#include "supervisor/base/ending.h"
#include "supervisor/base/memory_events.h"
#include "supervisor/base/rank_notes.h"
#include "supervisor/sampler/sampler.h"
#include "supervisor/sampler/sampling.h"
#include "supervisor/stream/rank_output.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_own_arguments = 8; ///< member FOLDER FIRST GPUS TASKS GPUS_PER_TASK TMP --
constexpr std::string_view k_no_tmp = "-";
constexpr int k_between_queries = 5000; ///< milliseconds between two checks for kills for memory
/// From the end of the program, for output of the processes that it left behind.
constexpr std::chrono::milliseconds k_leftover_output{500};
/// For the last records of the log, which a slow disk may delay.
constexpr std::chrono::milliseconds k_last_records{200};
/// Exit statuses with which a program requests something (man gpuq-chain).
constexpr std::array k_asking = {85, 93};

/// Variables in which a driver library reads the GPUs that a process may see; set by Slurm.
constexpr std::array k_visible = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                  "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};

/// The part of a list that belongs to task number `task` of its node.
std::string part_of(std::string_view list, std::size_t task, std::size_t count)
{
    std::vector<std::string_view> all;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        all.push_back(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    const std::size_t first = std::min(task * count, all.size());
    const std::size_t last = std::min(first + count, all.size());
    return fmt::format("{}", fmt::join(all.begin() + static_cast<std::ptrdiff_t>(first),
                                       all.begin() + static_cast<std::ptrdiff_t>(last), ","));
}

Result<MemberPlan> plan_in(const std::vector<std::string>& arguments)
{
    std::array<std::uint64_t, 3> numbers{};
    bool whole = arguments.size() > k_own_arguments && arguments[k_own_arguments - 1] == "--";
    for (std::size_t i = 0; whole && i < numbers.size(); ++i) {
        const auto number = whole_number(arguments[3 + i]);
        whole = number && *number <= 1'000'000;
        numbers[i] = number.value_or(0);
    }
    if (!whole) {
        return fail(Error::Kind::usage, "usage: gpuq-supervisor member DIRECTORY NODE GPUS TASKS "
                                        "GPUS_PER_TASK TMP -- PROGRAM [ARG...]");
    }
    return MemberPlan{"",
                      arguments[1],
                      arguments[2],
                      static_cast<int>(numbers[0]),
                      static_cast<int>(numbers[1]),
                      static_cast<int>(numbers[2]),
                      arguments[6] == k_no_tmp ? "" : arguments[6]};
}

/// Starts the program. If it can't be executed, its stderr ends with the reason.
Result<pid_t> start(const std::vector<std::string>& arguments, const Environment& variables,
                    const RankOutput& output, const std::string& node)
{
    const auto [out, err] = output.program_side();
    TRY_ASSIGN(Spawned program, spawn({.argv = arguments,
                                       .environment = variables.texts(),
                                       .search = Subprocess::Search::its_path,
                                       .descriptors = {STDIN_FILENO, out, err},
                                       .death_signal = SIGKILL}));
    if (const auto failure = failure_of(program)) {
        write_all(err,
                  fmt::format("gpuq-supervisor: {}: {} on node {}\n", sanitised(arguments.front()),
                              failure->error == ENOENT ? "not found" : "not executable", node));
    }
    return program.pid;
}

/// True if Slurm's signals to a step, except KILL, reach only the tasks themselves, as they do if
/// it tracks processes by cgroups. Otherwise they reach all processes below the tasks.
bool are_signals_for_tasks_only()
{
    std::ifstream file("/proc/self/cgroup");
    std::string unified;
    for (std::string line; std::getline(file, line);) {
        if (line.find(":freezer:") != std::string::npos) {
            return line.find("/job_") != std::string::npos;
        }
        unified = line.starts_with("0::") ? line : unified;
    }
    return unified.find("/job_") != std::string::npos;
}

/// Those for the program wait to be read.
constexpr std::array k_signals = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                                  SIGALRM, SIGXCPU, SIGURG,  SIGIO,   SIGCHLD};

void let_signals_go()
{
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Waits for the program of a rank.
class Rank {
public:
    /// `first`: the first rank on its node, which checks for kills on behalf of all.
    Rank(int link, int number, std::string node, bool first)
        : m_link(link)
        , m_number(number)
        , m_first(first)
        , m_node(std::move(node))
        , m_signals(block_and_report(k_signals))
        , m_forwards(are_signals_for_tasks_only())
        , m_memory(memory_counts())
    {
    }
    /// Waits for the end of the program and of its output; returns the wait status.
    int wait_for(pid_t program, RankOutput& output)
    {
        std::optional<int> status;
        while (!status) {
            const auto streams = output.polled();
            std::array<pollfd, 3> all{streams[0], streams[1], pollfd{m_signals.get(), POLLIN, 0}};
            if (::poll(all.data(), all.size(), m_first ? k_between_queries : -1) == 0) {
                measure_memory();
                continue;
            }
            output.pass({all[0], all[1]});
            take_signals(program);
            status = ended(program);
        }
        pass_rest(output);
        return *status;
    }

private:
    /// Forwards the rest of the program's output, which the first round reads, and that of the
    /// processes that it left behind: these may hold its streams open, and print, for ever.
    static void pass_rest(RankOutput& output)
    {
        const auto until = std::chrono::steady_clock::now() + k_leftover_output;
        auto left = k_leftover_output;
        while (!output.ended() && left.count() > 0) {
            auto streams = output.polled();
            if (::poll(streams.data(), streams.size(), static_cast<int>(left.count())) == 0) {
                break;
            }
            output.pass(streams);
            left = std::chrono::ceil<std::chrono::milliseconds>(until -
                                                                std::chrono::steady_clock::now());
        }
    }
    void take_signals(pid_t program) const
    {
        signalfd_siginfo signal{};
        while (::read(m_signals.get(), &signal, sizeof signal) == sizeof signal) {
            if (m_forwards && signal.ssi_signo != SIGCHLD) {
                ::kill(program, static_cast<int>(signal.ssi_signo));
            }
        }
    }
    std::optional<int> ended(pid_t program)
    {
        int status = 0;
        if (::waitpid(program, &status, WNOHANG) != program) {
            return std::nullopt;
        }
        measure_memory();
        if (status != 0) {
            note_end(m_link, {m_number, m_node, status});
        }
        return status;
    }
    void measure_memory()
    {
        if (m_memory.add(memory_counts()) != MemoryKills{}) {
            log::warning(log::Part::supervisor, "{} ({})", to_sentence(m_memory.all()), m_node);
            note_memory(m_link, m_number, m_node, m_memory.all());
        }
    }
    int m_link, m_number;
    bool m_first;
    std::string m_node;
    Descriptor m_signals;
    bool m_forwards;
    MemoryWatch m_memory;
};

/// Ends with the program's signal or status, but with 0 for the statuses in k_asking.
int end_as(int status)
{
    if (WIFSIGNALED(status)) {
        const rlimit no_core{0, 0};
        ::setrlimit(RLIMIT_CORE, &no_core);
        ::signal(WTERMSIG(status), SIG_DFL);
        let_signals_go();
        ::raise(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    const int own = WEXITSTATUS(status);
    return std::find(k_asking.begin(), k_asking.end(), own) != k_asking.end() ? 0 : own;
}

} // namespace

std::vector<std::string> member_arguments(const MemberPlan& plan)
{
    return {plan.executable,
            "member",
            plan.directory,
            plan.first_node,
            std::to_string(plan.gpus),
            std::to_string(plan.tasks),
            std::to_string(plan.gpus_per_task),
            plan.tmp.empty() ? std::string(k_no_tmp) : plan.tmp,
            "--"};
}

void describe_rank(Environment& variables, const MemberPlan& plan)
{
    const auto copy = [&](const char* slurms, std::initializer_list<const char*> names) {
        for (const char* name : names) {
            if (const auto value = variables.value(slurms)) {
                variables.set_default(name, *value);
            }
        }
    };
    copy("SLURM_PROCID", {"RANK"});
    copy("SLURM_LOCALID", {"LOCAL_RANK"});
    copy("SLURM_NTASKS", {"WORLD_SIZE"});
    copy("SLURM_NODEID", {"NODE_RANK", "GROUP_RANK"});
    variables.set_default("LOCAL_WORLD_SIZE", std::to_string(plan.tasks));
    if (plan.tasks == 1) {
        copy("SLURM_NODEID", {"PET_NODE_RANK"});
    }
    const auto task = whole_number(variables.value("SLURM_LOCALID").value_or(""));
    for (const char* name : k_visible) {
        const auto all = variables.value(name);
        if (plan.gpus_per_task > 0 && task && all) {
            variables.set(name, part_of(*all, *task, static_cast<std::size_t>(plan.gpus_per_task)));
        }
    }
}

Result<int> become_member(const std::vector<std::string>& arguments, const std::string& node,
                          const RemoveTree& remove_tree)
{
    TRY_ASSIGN(const MemberPlan plan, plan_in(arguments));
    const Descriptor link(
        ::open(plan.directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    Environment variables = Environment::own();
    const bool first = variables.value("SLURM_LOCALID").value_or("0") == "0";
    Sampler sampler;
    if (first && node != plan.first_node) {
        sampler.start({"/proc/self/exe", node, k_gpus_of_step, plan.gpus, link.get(), false});
    }
    const auto number = whole_number(variables.value("SLURM_PROCID").value_or("0"));
    start_log(plan.directory, fmt::format("rank-{}", number.value_or(0)));
    Rank rank(link.get(), static_cast<int>(number.value_or(0)), node, first);
    describe_rank(variables, plan);
    TRY_ASSIGN(RankOutput output,
               RankOutput::open(link.get(), static_cast<int>(number.value_or(0))));
    std::optional<LinkTmp> own_tmp;
    if (!plan.tmp.empty() && node != plan.first_node) {
        if (auto made = LinkTmp::make()) {
            own_tmp = *std::move(made);
            variables.set("TMPDIR", own_tmp->path());
        }
    } else if (!plan.tmp.empty()) {
        variables.set("TMPDIR", plan.tmp);
    }
    const auto program =
        start({arguments.begin() + k_own_arguments, arguments.end()}, variables, output, node);
    if (!program) {
        return fail(Error::Kind::internal, fmt::format("can't start the program on node {}: {}",
                                                       node, program.error().text));
    }
    ::signal(SIGPIPE, SIG_IGN);
    output.close_program_side();
    log::debug(log::Part::supervisor, "process {} is the program", *program);
    const int status = rank.wait_for(*program, output);
    log::info(log::Part::supervisor, "the program ended with wait status {:#x}", status);
    if (own_tmp) {
        own_tmp->remove(remove_tree);
    }
    log::flush(k_last_records);
    return end_as(status);
}

} // namespace gpuq::supervisor
