// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/job_request.h"

#include "core/job_variables.h"
#include "ports/job.h"
#include "slurm/connection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace gpuq::slurm {
namespace {

std::string current_umask()
{
    // umask(2) can't read the umask without changing it for all threads.
    constexpr std::string_view k_field = "Umask:\t";
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(k_field)) {
            return line.substr(k_field.size());
        }
    }
    return "0022";
}

std::string host_name()
{
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

} // namespace

JobRequest::JobRequest(const JobSpec& spec)
    : m_spec(spec)
{
    load_configuration();
    slurm_init_job_desc_msg(&m_message);
    const auto nodes = static_cast<std::uint32_t>(spec.nodes);
    const auto tasks = static_cast<std::uint32_t>(spec.tasks_per_node);
    const auto cpus = static_cast<std::uint32_t>(spec.cpus_per_node.value_or(spec.tasks_per_node));
    m_message.name = text(spec.name);
    m_message.partition = text(spec.partition);
    m_message.comment = text(spec.comment);
    m_message.work_dir = text(spec.work_dir);
    m_message.account = text(spec.account.value_or(""));
    m_message.qos = text(spec.qos.value_or(""));
    m_message.min_nodes = nodes;
    m_message.max_nodes = nodes;
    m_message.num_tasks = nodes * tasks;
    m_message.ntasks_per_node = static_cast<std::uint16_t>(tasks);
    m_message.min_cpus = nodes * cpus;
    m_message.requeue = 0;
    m_message.tres_per_node = text(gpu_text(spec));
    if (spec.walltime.count() > 0) {
        m_message.time_limit = static_cast<std::uint32_t>(spec.walltime.count());
    }
    if (spec.cpus_per_node) { // unset: the partition's DefCpuPerGPU
        m_message.cpus_per_task = static_cast<std::uint16_t>(std::max(cpus / tasks, 1U));
        m_message.pn_min_cpus = static_cast<std::uint16_t>(cpus);
    }
    if (spec.memory_mib_per_node) {
        m_message.pn_min_memory = *spec.memory_mib_per_node;
    }
    if (spec.after_ok) {
        m_message.dependency = text(fmt::format("afterok:{}", spec.after_ok->value));
        m_message.bitflags |= KILL_INV_DEP;
    } else if (spec.after_any) {
        m_message.dependency = text(fmt::format("afterany:{}", spec.after_any->value));
    }
    if (spec.pause.count() > 0) {
        m_message.begin_time = std::time(nullptr) + spec.pause.count();
    }
    m_message.exc_nodes = text(fmt::format("{}", fmt::join(spec.exclude, ",")));
}

job_desc_msg_t* JobRequest::allocation()
{
    m_message.immediate = 1;
    // With a listener, Slurm would end the job when it stops responding (InactiveLimit).
    m_message.other_port = 0;
    return &m_message;
}

job_desc_msg_t* JobRequest::batch(const std::string& script, std::vector<std::string> environment)
{
    environment = variables_for_job(environment);
    for (std::string& variable : sbatch_variables(m_spec)) {
        environment.push_back(std::move(variable));
    }
    for (std::string& variable : environment) {
        m_environment.push_back(text(std::move(variable)));
    }
    m_arguments.push_back(text(m_spec.name.empty() ? "gpuq" : m_spec.name));
    m_message.argv = m_arguments.data();
    m_message.argc = 1;
    m_message.env_size = static_cast<std::uint32_t>(m_environment.size());
    m_environment.push_back(nullptr);
    m_message.environment = m_environment.data();
    m_message.script = text(script);
    m_message.std_out =
        text(m_spec.output.empty() ? "/dev/null" : literal_file_name(m_spec.output));
    m_message.open_mode = OPEN_MODE_APPEND;
    return &m_message;
}

/// Stores a text for the message; returns nullptr, Slurm's value for "unset", if it is empty.
char* JobRequest::text(std::string value)
{
    if (value.empty()) {
        return nullptr;
    }
    std::vector<char> bytes(value.begin(), value.end());
    bytes.push_back('\0');
    m_texts.push_back(std::move(bytes));
    return m_texts.back().data(); // stays valid when m_texts grows: the bytes are on the heap
}

std::string gpu_text(const JobSpec& spec)
{
    const std::string gres =
        gres_text({spec.gpus_per_node, spec.gpu_model, std::nullopt, spec.share});
    return gres.empty() ? gres : fmt::format("{}{}", k_gres_prefix, gres);
}

std::string literal_file_name(std::string_view path)
{
    // Slurm drops a backslash and then takes every % in the name literally.
    const bool escaped = path.find('\\') != std::string_view::npos;
    std::string name;
    for (const char c : path) {
        if (c == '\\' || (c == '%' && !escaped)) {
            name += c;
        }
        name += c;
    }
    return name;
}

std::vector<std::string> sbatch_variables(const JobSpec& spec)
{
    std::vector<std::string> variables{
        fmt::format("SLURM_SUBMIT_DIR={}", spec.work_dir),
        fmt::format("SLURM_SUBMIT_HOST={}", host_name()),
        fmt::format("SLURM_JOB_NAME={}", spec.name),
        fmt::format("SLURM_UMASK={}", current_umask()),
    };
    errno = 0;
    if (const int nice = ::getpriority(PRIO_PROCESS, 0); errno == 0) {
        variables.push_back(fmt::format("SLURM_PRIO_PROCESS={}", nice));
    }
    return variables;
}

} // namespace gpuq::slurm
