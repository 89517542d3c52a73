// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/slurm_questions.h"

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// Slurm's own timeout for its controller is ten seconds.
constexpr auto k_patience = 15s;

} // namespace

bool SlurmQuestions::ask(Clock::time_point now, const std::string& queues)
{
    if (!m_options.job) {
        return false;
    }
    if (!m_helper) {
        m_asked_at = now;
        m_helper = Helper::execute(m_options, {HelperWork::Kind::query_job, encoded(queues)});
    }
    return m_helper.has_value();
}

std::optional<SlurmQuestions::Clock::time_point> SlurmQuestions::gives_up_at() const
{
    return m_helper ? std::optional(m_asked_at + k_patience) : std::nullopt;
}

std::optional<JobNews> SlurmQuestions::answer()
{
    const std::string text = m_helper ? m_helper->finish() : "";
    m_helper.reset();
    return decoded<JobNews>(text);
}

void SlurmQuestions::drop()
{
    if (m_helper) {
        m_helper->finish();
        m_helper.reset();
    }
}

std::optional<pid_t> SlurmQuestions::pid() const
{
    return m_helper ? std::optional(m_helper->pid()) : std::nullopt;
}

} // namespace gpuq::supervisor
