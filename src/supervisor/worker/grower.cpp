// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/grower.h"

#include "core/number.h"
#include "io/subprocess.h"

#include <chrono>
#include <csignal>
#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_between_checks = 10s;
/// After a failure, such as a node from which no jobs may be submitted, or a limit of the policy.
constexpr auto k_after_failure = 10min;

} // namespace

Grower::Grower(Store& store, const sweeps::Sweep& sweep, sweeps::TryTaker& taker,
               const std::vector<std::string>& command)
    : m_sweep(sweep)
    , m_taker(taker)
    , m_command(command)
    , m_growth(store, sweep.run.key)
{
}

void Grower::end()
{
    if (is_adding()) {
        kill_and_reap(std::exchange(m_pid, -1));
    }
}

void Grower::update(EventLoop::Moment now, Time wall_clock)
{
    reap(now);
    if (m_command.empty() || is_adding() || now < m_check_at) {
        return;
    }
    m_check_at = now + k_between_checks;
    if (!m_growth.is_allowed() || !m_taker.refresh()) {
        return;
    }
    const auto vacancy = m_growth.vacancy(m_sweep, m_taker.board(), wall_clock);
    if (vacancy && *vacancy) {
        start(**vacancy);
    }
}

void Grower::reap(EventLoop::Moment now)
{
    const auto status = is_adding() ? exit_code_if_ended(m_pid) : std::nullopt;
    if (status) {
        m_pid = -1;
        m_has_failed = m_has_failed || *status != 0;
        m_check_at = now + (*status == 0 ? k_between_checks : k_after_failure);
    }
}

void Grower::start(const sweeps::Vacancy& vacancy)
{
    std::vector<std::string> argv = m_command;
    argv.push_back(vacancy.behind.text());
    argv.push_back(std::to_string(vacancy.number));
    const int messages = m_has_failed ? Subprocess::k_null : STDERR_FILENO;
    auto child = spawn({.argv = std::move(argv),
                        .descriptors = {Subprocess::k_null, messages, messages},
                        .group = Subprocess::Group::own,
                        .death_signal = SIGKILL});
    m_pid = child ? child->pid : -1;
}

Result<sweeps::Vacancy> parse_vacancy(const std::string& behind, const std::string& number)
{
    TRY_ASSIGN(RunKey key, RunKey::parse(behind));
    const auto value = whole_number(number);
    constexpr std::uint64_t k_most = 1'000'000;
    if (!value || *value == 0 || *value > k_most) {
        return fail(Error::Kind::usage, "add-worker: '" + number + "' is not a number of a worker");
    }
    return sweeps::Vacancy{std::move(key), static_cast<int>(*value)};
}

} // namespace gpuq::supervisor
