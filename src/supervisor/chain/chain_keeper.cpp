// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/chain/chain_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds k_shortest_period = 500ms;
constexpr std::chrono::milliseconds k_longest_period = 10s;
/// Polling interval once the program has been notified: it should not have to wait for gpuq to see
/// the checkpoint.
constexpr auto k_noticed_period = 250ms;
/// Allows for a hanging disk and for a slow check by the user.
constexpr auto k_search_patience = 900s;
/// Two message timeouts of Slurm, plus the work.
constexpr auto k_submit_patience = 45s;
constexpr auto k_conclude_patience = 60s;
constexpr auto k_withdraw_patience = 15s;
/// Retry delay after a lost answer: by then Slurm either has the job or not.
constexpr auto k_submit_again = 60s;
/// Multiple of the usual checkpoint interval that must be left for another checkpoint.
constexpr double k_spare = 1.1;

} // namespace

ChainKeeper::ChainKeeper(Loop& loop, Clock& clock, const Options& options, const Run& run,
                         LinkStart link_start, Journal journal)
    : m_loop(loop)
    , m_clock(clock)
    , m_run(run)
    , m_link_start(std::move(link_start))
    , m_journal(std::move(journal))
    , m_submission(loop, options)
    , m_search(loop, options)
    , m_settling(loop, options)
    , m_withdrawal(loop, options)
{
    m_self.link = options.link;
    m_self.host = options.node;
    m_self.started_at = clock.now();
    m_period = std::clamp<std::chrono::milliseconds>(m_link_start.length / 100, k_shortest_period,
                                                     k_longest_period);
}

void ChainKeeper::set_end(Time at)
{
    m_link_start.length =
        std::max(0s, std::chrono::floor<std::chrono::seconds>(at - m_self.started_at.value_or(at)));
}

void ChainKeeper::begin()
{
    m_began = true;
    m_submit_at = m_loop.now();
    m_check_at = m_loop.now() + m_period;
}

void ChainKeeper::update()
{
    if (const auto output = m_submission.take()) {
        submitted(decoded<NextSubmission>(*output));
    }
    if (const auto output = m_search.take()) {
        on_checkpoints(decoded<CheckpointSet>(*output).value_or(m_checkpoints));
    }
    if (const auto output = m_settling.take()) {
        m_outcome = decoded<LinkOutcome>(*output);
        if (m_outcome) {
            on_checkpoints(m_outcome->candidates);
        } else {
            give_up_settling();
        }
    }
    (void)m_withdrawal.take();
    if (m_ended || !m_began) {
        return;
    }
    if (is_due(m_submit_at, m_submission)) {
        submit();
    }
    if (is_due(m_check_at, m_search)) {
        check_checkpoints();
    }
}

/// Wakes the loop at `at` unless the operation is in progress.
bool ChainKeeper::is_due(std::optional<Steady>& at, const HelperCall& call)
{
    if (!at || call.in_progress()) {
        return false;
    }
    if (m_loop.now() < *at) {
        m_loop.wake_at(*at);
        return false;
    }
    at.reset();
    return true;
}

std::vector<pid_t> ChainKeeper::pids() const
{
    std::vector<pid_t> pids;
    for (const HelperCall* call : {&m_submission, &m_search, &m_settling, &m_withdrawal}) {
        if (const auto pid = call->pid()) {
            pids.push_back(*pid);
        }
    }
    return pids;
}

void ChainKeeper::submit()
{
    if (!m_submission.start({HelperWork::Kind::submit, encoded(m_link_start.length)},
                            k_submit_patience)) {
        m_submit_at = m_loop.now() + k_submit_again;
    }
}

void ChainKeeper::submitted(const std::optional<NextSubmission>& next)
{
    Event event;
    event.at = m_clock.now();
    if (next && next->job) {
        event.kind = Event::Kind::next_submitted;
        event.job = next->job->value;
        m_journal(std::move(event));
    } else if (!next || next->failure) {
        m_submit_at = m_loop.now() + k_submit_again;
        if (!std::exchange(m_reported_failure, true)) {
            event.kind = Event::Kind::next_failed;
            event.detail = next ? *next->failure : "Slurm does not answer";
            m_journal(std::move(event));
        }
    }
}

void ChainKeeper::check_checkpoints()
{
    if (!m_search.start({HelperWork::Kind::find_checkpoints, encoded(m_checkpoints)},
                        k_search_patience)) {
        m_check_at = m_loop.now() + m_period;
    }
}

void ChainKeeper::on_checkpoints(CheckpointSet candidates)
{
    const CheckedCheckpoint* newest = newest_usable(candidates, *m_run.request.chain);
    const bool is_of_this_link =
        newest != nullptr && newest->found.modified >= *m_self.started_at - 1s;
    if (is_of_this_link && (m_saved.empty() || newest->found.modified > m_saved.back())) {
        m_saved.push_back(newest->found.modified);
        m_self.checkpoint = newest->found.path;
        Event event;
        event.kind = Event::Kind::checkpoint;
        event.at = newest->found.modified;
        event.detail = newest->found.path;
        event.from = newest->found.step;
        event.to = newest->found.bytes;
        if (is_after_notice(newest->found.modified, m_self.noticed_at)) {
            m_self.saved_after_notice = true;
            m_saved_since = m_saved_since.value_or(m_loop.now());
        }
        m_journal(std::move(event));
    }
    m_checkpoints = std::move(candidates);
    m_check_at =
        m_loop.now() + (was_noticed() ? std::chrono::milliseconds(k_noticed_period) : m_period);
}

void ChainKeeper::noticed(Time at, bool preempted)
{
    if (was_noticed()) {
        return;
    }
    m_self.noticed_at = at;
    m_self.preempted = preempted;
    m_check_at = m_loop.now() + k_noticed_period;
}

bool ChainKeeper::is_last_that_fits(Time now, Time end) const
{
    if (m_saved.empty()) {
        return false;
    }
    const Time before = m_saved.size() > 1 ? m_saved[m_saved.size() - 2] : *m_self.started_at;
    const std::chrono::duration<double> usual = m_saved.back() - before;
    return now - m_saved.back() < usual && m_saved.back() + usual * k_spare > end;
}

void ChainKeeper::conclude(const Ending& ending, bool by_itself)
{
    m_ended = true;
    m_search.drop();
    m_submission.drop();
    m_self.ending = ending;
    if (!m_settling.start({HelperWork::Kind::conclude, encoded(m_self, m_checkpoints, by_itself)},
                          k_conclude_patience)) {
        give_up_settling();
    }
}

void ChainKeeper::give_up_settling()
{
    m_settling.drop();
    if (m_outcome) {
        return;
    }
    // Decide with the information available here. In doubt the run continues: the next link, or the
    // next gpuq command that examines the run, judges again. An earlier link may have saved.
    LinkOutcome outcome;
    std::vector<LinkPast> links{m_self};
    if (m_self.link > LinkNumber{1}) {
        LinkPast before{LinkNumber{m_self.link.value - 1}};
        before.ending = Ending{static_cast<int>(ExitStatus::time_limit), Cause::time_limit, "",
                               m_clock.now(), /*continues=*/true};
        before.checkpoint = "unknown";
        links.insert(links.begin(), before);
    }
    outcome.verdict = decide_next(m_run.request, links, m_clock.now());
    if (outcome.verdict.decision != Verdict::Decision::over || !outcome.verdict.why.empty()) {
        outcome.verdict = Verdict{};
        outcome.verdict.decision = Verdict::Decision::next_link;
        outcome.verdict.why = "it was not decided in time";
    }
    m_outcome = std::move(outcome);
}

void ChainKeeper::withdraw()
{
    m_withdrawal.start({HelperWork::Kind::withdraw}, k_withdraw_patience);
}

} // namespace gpuq::supervisor
