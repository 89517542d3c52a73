// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/notice_elsewhere.h"

#include "core/exit_status.h"
#include "ports/cluster.h"
#include "runs/records/record.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/base/process_tree.h"
#include "supervisor/notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// A step starts within tenths of a second; with a busy controller it takes seconds.
constexpr auto k_step_patience = 20s;
/// Time for an srun to end its step after TERM.
constexpr auto k_srun_patience = 2s;
static_assert(k_step_patience + k_srun_patience < k_notice_patience);
/// Time limit in seconds for each of the step's processes: scanning a node takes milliseconds.
constexpr unsigned k_alarm = 15;
/// Printed by a node that has been scanned.
constexpr std::string_view k_notified = "told ";

/// The output of a step on both streams.
class StepOutput {
public:
    explicit StepOutput(const StepProcess& step)
        : m_streams{Descriptor(step.output), Descriptor(step.error)}
    {
        for (const Descriptor& stream : m_streams) {
            set_nonblocking(stream.get());
        }
    }

    /// True if the step ended within `patience`.
    bool read_to_the_end(std::chrono::milliseconds patience)
    {
        const auto until = std::chrono::steady_clock::now() + patience;
        while (m_streams[0] || m_streams[1]) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(
                until - std::chrono::steady_clock::now());
            std::array<pollfd, 2> wait{pollfd{m_streams[0].get(), POLLIN, 0},
                                       pollfd{m_streams[1].get(), POLLIN, 0}};
            if (left <= 0ms) {
                return false;
            }
            ::poll(wait.data(), wait.size(), static_cast<int>(left.count()));
            for (std::size_t i = 0; i < wait.size(); ++i) {
                if (wait[i].revents != 0) {
                    read_some(i);
                }
            }
        }
        return true;
    }

    /// The number of nodes that have reported.
    int nodes() const
    {
        int count = 0;
        for (std::size_t at = m_output[0].find(k_notified); at != std::string::npos;
             at = m_output[0].find(k_notified, at + 1)) {
            ++count;
        }
        return count;
    }
    std::string first_error() const
    {
        constexpr std::size_t k_most = 300;
        return m_output[1].substr(0, std::min(m_output[1].find('\n'), k_most));
    }

private:
    void read_some(std::size_t i)
    {
        constexpr std::size_t k_most = 64 << 10;
        char piece[4096];
        const ssize_t size = ::read(m_streams[i].get(), piece, sizeof piece);
        if (size > 0 && m_output[i].size() < k_most) {
            m_output[i].append(piece, static_cast<std::size_t>(size));
        } else if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
            m_streams[i].reset();
        }
    }

    std::array<Descriptor, 2> m_streams;
    std::array<std::string, 2> m_output;
};

} // namespace

std::string notify_elsewhere(Services& services, const Options& options, int nodes, Notice notice)
{
    become_subreaper(); // srun stays below this process
    auto cluster = services.cluster();
    const auto step = cluster ? (*cluster)->start_step_elsewhere(
                                    *options.job,
                                    {own_program(), "notice", options.state_dir, options.key.text(),
                                     std::to_string(options.link.value), std::string(word(notice))},
                                    nodes)
                              : Result<StepProcess>(cluster.error());
    if (!step) {
        return step.error().text;
    }
    StepOutput step_output(*step);
    if (!step_output.read_to_the_end(k_step_patience)) {
        ::kill(step->pid, SIGTERM);
        if (!step_output.read_to_the_end(k_srun_patience)) {
            ::kill(-step->pid, SIGKILL); // it has a session of its own
        }
    }
    const int others = nodes - 1;
    if (step_output.nodes() >= others) {
        return "";
    }
    const std::string error = step_output.first_error();
    return fmt::format("{} of {} reached{}{}", step_output.nodes(), others,
                       error.empty() ? "" : ": ", error);
}

int notify_this_node(const Options& options, Notice notice)
{
    ::alarm(k_alarm);
    const auto all = listeners("GPUQ_RUN_ID=" + options.key.text(), options.node, {});
    const std::vector<pid_t> notified = notify_processes(all, notice);
    return static_cast<int>(
        write_all(STDOUT_FILENO, fmt::format("{}{}\n", k_notified, notified.size()))
            ? ExitStatus::success
            : ExitStatus::internal);
}

} // namespace gpuq::supervisor
