// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/run_channel.h"

#include "remote/ssh_arguments.h"

#include <array>
#include <csignal>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

std::string read_all(int descriptor)
{
    std::string text;
    std::array<char, 4096> buffer;
    ssize_t count = 0;
    while ((count = ::read(descriptor, buffer.data(), buffer.size())) > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
}

/// The first message of gpuq, if any: ssh only adds that its connection was closed, and srun, in
/// varying order, that a step has failed.
std::string reason_in(std::string_view errors)
{
    constexpr std::string_view k_gpuq = "gpuq: ";
    constexpr std::string_view k_srun = "srun: ";
    std::string_view left = errors;
    for (std::size_t found = 0; (found = left.find(k_gpuq)) != std::string_view::npos;) {
        left.remove_prefix(found + k_gpuq.size());
        if (!left.starts_with(k_srun)) {
            return last_message(left.substr(0, left.find('\n')));
        }
    }
    return last_message(errors);
}

} // namespace

RunChannel::RunChannel(std::string program, wire::remote::Start start)
    : m_program(std::move(program))
    , m_start(std::move(start))
{
}

RunChannel::~RunChannel()
{
    end();
}

void RunChannel::end()
{
    if (m_process && !m_ended) {
        ::kill(-m_process->pid, SIGTERM);
    }
    m_process.reset();
    m_channel.reset();
}

Result<bool> RunChannel::open(const wire::remote::Following& run)
{
    if (m_channel && run.key == m_key && run.job == m_job) {
        return false;
    }
    end();
    m_key = run.key;
    m_job = run.job;
    wire::remote::Start start = m_start;
    start.terminals = {};
    start.no_input = false;
    start.directory = std::string("/");
    start.arguments = {"connect", "--dial", run.key};
    start.arguments.insert(start.arguments.end(), m_start.forwards.begin(), m_start.forwards.end());
    TRY_ASSIGN(m_process, start_verb(m_program, start));
    m_ended = m_answered = false;
    m_channel.emplace(std::move(m_process->out), std::move(m_process->input));
    set_nonblocking(m_process->err.get());
    return true;
}

std::string RunChannel::close()
{
    m_channel.reset();
    const std::string output = m_process ? reason_in(read_all(m_process->err.get())) : "";
    end();
    return m_answered ? "" : output.empty() ? "can't connect to the run" : output;
}

void RunChannel::on_child(pid_t pid)
{
    m_ended = m_ended || (m_process && m_process->pid == pid);
}

} // namespace gpuq::remote
