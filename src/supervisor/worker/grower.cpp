// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/grower.h"

#include "core/number.h"
#include "io/subprocess.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr EventLoop::Clock::duration k_between_checks = 10s;
/// After a failure, such as a node from which no jobs may be submitted, or a limit of the policy.
constexpr EventLoop::Clock::duration k_after_failure = 10min;
/// Between two queries for all jobs, a large response on a busy cluster.
constexpr auto k_between_queries = 2min;
/// A controller that takes long to respond is queried more rarely.
constexpr int k_rest = 200;

} // namespace

Grower::Grower(Store& store, const sweeps::Sweep& sweep, sweeps::TryTaker& taker,
               const RunKey& self, const std::optional<GrowthCommands>& commands)
    : m_sweep(sweep)
    , m_taker(taker)
    , m_self(self)
    , m_commands(commands)
    , m_growth(store, sweep.run.key)
{
}

void Grower::end()
{
    if (is_busy()) {
        kill_and_reap(std::exchange(m_pid, -1));
    }
}

void Grower::replace_this_worker()
{
    end(); // a check of the queue
    m_replaces = true;
    m_gives_way = false;
    m_check_at = m_add_at = {};
}

void Grower::update(EventLoop::Moment now, Time wall_clock)
{
    reap(now);
    if (!m_commands || m_gives_way || is_busy() || now < m_check_at) {
        return;
    }
    m_check_at = now + k_between_checks;
    m_query_at = m_query_at.value_or(now + m_commands->first_check);
    if (!m_growth.is_allowed() || !m_taker.refresh()) {
        return;
    }
    const auto vacancy = now >= m_add_at ? m_growth.vacancy(m_sweep, m_taker.board(), wall_clock)
                                         : Result<std::optional<sweeps::Vacancy>>(std::nullopt);
    m_is_adding = vacancy && *vacancy;
    if (m_is_adding) {
        std::vector<std::string> argv = m_commands->add_worker;
        argv.push_back((*vacancy)->behind.text());
        argv.push_back(std::to_string((*vacancy)->number));
        if (m_replaces) {
            argv.emplace_back(k_replaces);
        }
        start(std::move(argv), now);
    } else if (now >= *m_query_at && m_growth.is_newest_of_several(m_self, wall_clock)) {
        start(m_commands->check_queue, now);
    }
}

bool Grower::must_stay(Time wall_clock)
{
    if (!m_gives_way) {
        return false;
    }
    const bool is_known = m_taker.refresh().has_value();
    const sweeps::Board& board = m_taker.board();
    const bool is_open = m_sweep.propose && !board.is_closed();
    const bool are_left = is_open || sweeps::tally_of(board.tries()).waiting > 0;
    if (is_known && (board.is_stopped() || !are_left)) {
        return false;
    }
    using Older = sweeps::Growth::Older;
    const Older older = m_growth.older_than(m_self, wall_clock);
    if (older == Older::gone) {
        m_gives_way = false;
        std::fputs("gpuq: no older worker of the sweep is left: this one takes tries again\n",
                   stderr);
    }
    return older != Older::continues;
}

bool Grower::leaves_another(Time wall_clock)
{
    return m_growth.is_newest_of_several(m_self, wall_clock);
}

void Grower::reap(EventLoop::Moment now)
{
    const auto status = is_busy() ? exit_code_if_ended(m_pid) : std::nullopt;
    if (!status) {
        return;
    }
    m_pid = -1;
    const bool others_wait = *status == k_status_give_way;
    m_has_failed = m_has_failed || (*status != 0 && !others_wait);
    const auto pause =
        std::max<EventLoop::Clock::duration>(k_between_queries, k_rest * (now - m_started_at));
    if (m_is_adding) {
        m_add_at = now + (*status == 0 ? k_between_checks : others_wait ? pause : k_after_failure);
    } else {
        m_gives_way = others_wait;
        m_query_at = now + pause;
    }
}

void Grower::start(std::vector<std::string> argv, EventLoop::Moment now)
{
    const int messages = m_has_failed ? Subprocess::k_null : STDERR_FILENO;
    auto child = spawn({.argv = std::move(argv),
                        .descriptors = {Subprocess::k_null, messages, messages},
                        .group = Subprocess::Group::own,
                        .death_signal = SIGKILL});
    m_pid = child ? child->pid : -1;
    m_started_at = now;
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
