// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/command_line.h"

#include "runs/records/record.h"

#include <charconv>
#include <utility>

namespace gpuq::supervisor {
namespace {

constexpr const char* k_usage =
    "usage: gpuq-supervisor run|relay|guard|connect|keep|helper STATE_DIR KEY LINK [--first], "
    "gpuq-supervisor forward STATE_DIR KEY LINK HOST:PORT..., or "
    "gpuq-supervisor notice STATE_DIR KEY LINK auto|USR1|USR2|TERM";

constexpr std::pair<std::string_view, Task> k_tasks[] = {
    {"run", Task::run},         {"relay", Task::relay},     {"guard", Task::guard},
    {"connect", Task::connect}, {"forward", Task::forward}, {"notice", Task::notice},
    {"keep", Task::keep},       {"helper", Task::helper}};

std::optional<Task> task_of(std::string_view word)
{
    for (const auto& [name, task] : k_tasks) {
        if (name == word) {
            return task;
        }
    }
    return std::nullopt;
}

template <typename Number>
std::optional<Number> number_in(const std::optional<std::string>& text)
{
    Number number = 0;
    const char* end = text ? text->data() + text->size() : nullptr;
    if (!text || std::from_chars(text->data(), end, number).ptr != end || number <= 0) {
        return std::nullopt;
    }
    return number;
}

} // namespace

Result<CommandLine> parse_command_line(const std::vector<std::string>& arguments,
                                       const Variables& variables, const std::string& host)
{
    const std::optional<Task> task = task_of(arguments.empty() ? "" : arguments[0]);
    const auto link = arguments.size() > 3 ? number_in<int>(arguments[3]) : std::nullopt;
    const std::string fifth = arguments.size() == 5 ? arguments[4] : "";
    const bool is_notice = task.has_value() && *task == Task::notice;
    const auto notice = is_notice ? notice_from_word(fifth) : std::nullopt;
    const bool first = !is_notice && fifth == "--first";
    const bool is_forward = task.has_value() && *task == Task::forward;
    const bool complete = is_forward  ? arguments.size() > 4
                          : is_notice ? notice.has_value()
                                      : first || arguments.size() == 4;
    if (!task || !link || !complete || !arguments[1].starts_with('/')) {
        return fail(Error::Kind::usage, k_usage);
    }
    TRY_ASSIGN(RunKey key, RunKey::parse(arguments[2]));
    Options options{.state_dir = arguments[1], .key = std::move(key), .link = LinkNumber{*link}};
    options.first = first;
    if (const auto job = number_in<std::uint32_t>(variables("SLURM_JOB_ID"))) {
        options.job = JobId{*job};
    }
    options.node = variables("SLURMD_NODENAME").value_or(host);
    options.partition = variables("SLURM_JOB_PARTITION").value_or("");
    options.launch_address = variables("SLURM_LAUNCH_NODE_IPADDR").value_or("");
    if (const auto end = number_in<std::int64_t>(variables("SLURM_JOB_END_TIME"))) {
        options.ends_at = Time{std::chrono::seconds{*end}};
    }
    std::vector<std::string> destinations;
    if (is_forward) {
        destinations.assign(arguments.begin() + 4, arguments.end());
    }
    return CommandLine{*task, std::move(options), notice.value_or(Notice::none),
                       std::move(destinations)};
}

} // namespace gpuq::supervisor
