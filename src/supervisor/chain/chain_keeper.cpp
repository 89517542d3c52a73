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

ChainKeeper::ChainKeeper(Clock& clock, const Options& options, const Run& run, LinkStart link_start,
                         Journal journal)
    : m_clock(clock)
    , m_options(options)
    , m_run(run)
    , m_link_start(std::move(link_start))
    , m_journal(std::move(journal))
{
    m_self.link = options.link;
    m_self.host = options.node;
    m_self.started_at = clock.now();
    m_period = std::clamp<std::chrono::milliseconds>(m_link_start.length / 100, k_shortest_period,
                                                     k_longest_period);
}

ChainKeeper::~ChainKeeper()
{
    for (Running* running : {&m_submission, &m_search, &m_settling, &m_withdrawal}) {
        drop(*running);
    }
}

void ChainKeeper::begin(Steady now)
{
    m_began = true;
    m_submit_at = now;
    m_check_at = now + m_period;
}

void ChainKeeper::add_to(PollSet& polls)
{
    for (Running* running : {&m_submission, &m_search, &m_settling, &m_withdrawal}) {
        running->polled = polls.add(running->helper ? running->helper->answer() : -1, POLLIN);
    }
}

void ChainKeeper::start(Running& running, Steady now, std::chrono::seconds patience,
                        const HelperWork& work)
{
    running.helper = Helper::execute(m_options, work);
    running.polled = 0;
    running.until = now + patience;
}

std::optional<std::string> ChainKeeper::answer(Running& running, const PollSet& polls, Steady now)
{
    if (!running.helper) {
        return std::nullopt;
    }
    const bool ready = running.polled != 0 && polls.ready(running.polled) != 0;
    if (!(ready && running.helper->read_more()) && now < running.until) {
        return std::nullopt;
    }
    std::string output = running.helper->finish();
    running.helper.reset();
    return output;
}

void ChainKeeper::drop(Running& running)
{
    if (running.helper) {
        running.helper->finish();
        running.helper.reset();
    }
}

void ChainKeeper::handle(const PollSet& polls, Steady now)
{
    if (const auto output = answer(m_submission, polls, now)) {
        submitted(decoded<NextSubmission>(*output), now);
    }
    if (const auto output = answer(m_search, polls, now)) {
        on_checkpoints(decoded<CheckpointSet>(*output).value_or(m_checkpoints), now);
    }
    if (const auto output = answer(m_settling, polls, now)) {
        m_outcome = decoded<LinkOutcome>(*output);
        if (m_outcome) {
            on_checkpoints(m_outcome->candidates, now);
        } else {
            give_up_settling();
        }
    }
    (void)answer(m_withdrawal, polls, now);
    if (m_ended || !m_began) {
        return;
    }
    if (m_submit_at && now >= *m_submit_at && !m_submission.helper) {
        submit(now);
    }
    if (m_check_at && now >= *m_check_at && !m_search.helper) {
        check_checkpoints(now);
    }
}

std::optional<ChainKeeper::Steady> ChainKeeper::next_wake() const
{
    std::optional<Steady> next;
    const auto take = [&](const std::optional<Steady>& at) {
        if (at && (!next || *at < *next)) {
            next = at;
        }
    };
    if (!m_ended) {
        take(m_submission.helper ? std::nullopt : m_submit_at);
        take(m_search.helper ? std::nullopt : m_check_at);
    }
    for (const Running* running : {&m_submission, &m_search, &m_settling, &m_withdrawal}) {
        take(running->helper ? std::optional(running->until) : std::nullopt);
    }
    return next;
}

std::vector<pid_t> ChainKeeper::pids() const
{
    std::vector<pid_t> pids;
    for (const Running* running : {&m_submission, &m_search, &m_settling, &m_withdrawal}) {
        if (running->helper) {
            pids.push_back(running->helper->pid());
        }
    }
    return pids;
}

void ChainKeeper::submit(Steady now)
{
    m_submit_at.reset();
    start(m_submission, now, k_submit_patience,
          {HelperWork::Kind::submit, encoded(m_link_start.length)});
}

void ChainKeeper::submitted(const std::optional<NextSubmission>& next, Steady now)
{
    Event event;
    event.at = m_clock.now();
    if (next && next->job) {
        event.kind = Event::Kind::next_submitted;
        event.job = next->job->value;
        m_journal(std::move(event));
    } else if (!next || next->failure) {
        m_submit_at = now + k_submit_again;
        if (!std::exchange(m_reported_failure, true)) {
            event.kind = Event::Kind::next_failed;
            event.detail = next ? *next->failure : "Slurm does not answer";
            m_journal(std::move(event));
        }
    }
}

void ChainKeeper::check_checkpoints(Steady now)
{
    m_check_at.reset();
    start(m_search, now, k_search_patience,
          {HelperWork::Kind::find_checkpoints, encoded(m_checkpoints)});
}

void ChainKeeper::on_checkpoints(CheckpointSet candidates, Steady now)
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
            m_saved_since = m_saved_since.value_or(now);
        }
        m_journal(std::move(event));
    }
    m_checkpoints = std::move(candidates);
    m_check_at = now + (was_noticed() ? std::chrono::milliseconds(k_noticed_period) : m_period);
}

void ChainKeeper::noticed(Time at, bool preempted, Steady now)
{
    if (was_noticed()) {
        return;
    }
    m_self.noticed_at = at;
    m_self.preempted = preempted;
    m_check_at = now + k_noticed_period;
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

void ChainKeeper::conclude(const Ending& ending, bool by_itself, Steady now)
{
    m_ended = true;
    drop(m_search);
    drop(m_submission);
    m_self.ending = ending;
    start(m_settling, now, k_conclude_patience,
          {HelperWork::Kind::conclude, encoded(m_self, m_checkpoints, by_itself)});
    if (!m_settling.helper) {
        give_up_settling();
    }
}

void ChainKeeper::give_up_settling()
{
    drop(m_settling);
    if (m_outcome) {
        return;
    }
    // Decide with the information available here. In doubt the run continues: the next link, or the
    // next gpuq command that examines the run, judges again.
    LinkOutcome outcome;
    outcome.verdict = decide_next(m_run.request, {m_self}, m_clock.now());
    if (outcome.verdict.decision != Verdict::Decision::over || !outcome.verdict.why.empty()) {
        outcome.verdict = Verdict{};
        outcome.verdict.decision = Verdict::Decision::next_link;
        outcome.verdict.why = "it was not decided in time";
    }
    m_outcome = std::move(outcome);
}

void ChainKeeper::withdraw(Steady now)
{
    start(m_withdrawal, now, k_withdraw_patience, {HelperWork::Kind::withdraw});
}

} // namespace gpuq::supervisor
