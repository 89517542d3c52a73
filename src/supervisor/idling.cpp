// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/idle.h"
#include "supervisor/supervisor.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::supervisor {
/// Called when the record of the run has been read: applies the rule if the partition takes idle
/// GPUs back.
void Supervisor::keep_idle_rule(const std::optional<std::string>& rules_json)
{
    const auto rules =
        rules_json ? idle_rules_from_json(*rules_json) : Result<IdleRules>(IdleRules{});
    if (!rules || m_run->request.gpus.count == 0) {
        return;
    }
    if (const auto rule = rules->find(m_options.partition); rule != rules->end()) {
        // Measurements of the samplers on other nodes do not arrive here.
        m_idle.emplace(rule->first, rule->second, /*measured=*/m_run->request.nodes == 1);
    }
}

void Supervisor::update_idle()
{
    if (!m_idle) {
        return;
    }
    m_idle->input(m_input.taken(), now());
    if (m_output.backlog.full()) {
        m_idle->printed(now()); // the program waits for the log, so it is not idle
    }
    const bool ends_already = m_progress.phase != Phase::running || m_leaving.stop_asked ||
                              m_leaving.notice || m_leaving.kill_at;
    switch (m_idle->next(ends_already)) {
    case IdleKeeper::Step::none:
        break;
    case IdleKeeper::Step::report_work:
        report_idle(IdleFinding::State::works);
        break;
    case IdleKeeper::Step::report_exemption:
        report_idle(IdleFinding::State::exempt);
        break;
    case IdleKeeper::Step::warn:
        warn_idle();
        break;
    case IdleKeeper::Step::ask:
        m_log->request_release(fmt::format("{}-{}", m_options.key.text(), m_options.link.value),
                               m_idle->rule().max_per_hour);
        break;
    case IdleKeeper::Step::release:
        release_idle();
        break;
    }
}

IdleFinding Supervisor::report_idle(IdleFinding::State state)
{
    IdleFinding finding = m_idle->report(state, m_services.clock.now());
    m_log->write_idle(to_json(finding));
    return finding;
}

void Supervisor::warn_idle()
{
    const std::string run =
        m_options.job ? fmt::format("{}", m_options.job->value) : m_options.key.text();
    const std::string text = idle_warning(report_idle(IdleFinding::State::warned), run);
    journal(Event::Kind::warned, text);
    if (!m_terminal.on_other_screen()) {
        m_clients->note(text); // the note is for the user; the screen drawn by a program stays
                               // intact
    }
}

/// Handles the answer to request_release().
void Supervisor::release_answered(bool may_release)
{
    m_idle->release_answered(may_release);
    if (!may_release) {
        report_idle(IdleFinding::State::put_off);
        journal(Event::Kind::warned,
                fmt::format("idle, but {} runs were released within the hour: it keeps running",
                            m_idle->rule().max_per_hour));
    }
}

void Supervisor::take_exemption(const std::string& text)
{
    const auto exemption = exemption_from_json(text);
    if (!m_idle || !exemption) {
        return;
    }
    m_idle->exempt();
    journal(Event::Kind::warned, fmt::format("its idle GPUs are not released: exempted by {} ({})",
                                             exemption->by, exemption->reason));
}

/// Like `gpuq stop --checkpoint`, but does not wait for a program that does not listen.
void Supervisor::release_idle()
{
    const auto evidence = report_idle(IdleFinding::State::released).evidence;
    const std::string rule = fmt::format("the idle GPU rule of queue {}", m_idle->partition());
    m_leaving.stop_asked = rule;
    journal(Event::Kind::stop_asked, rule, Urgency::now);
    const Termination termination{Cause::stopped,
                                  released_detail(evidence.at - evidence.idle_since)};
    m_clients->note(termination.detail);
    m_observed.termination = termination;
    const std::size_t notified = notice(termination, now() + k_time_to_save);
    const bool shell = m_run->request.pty && m_run->request.pty->shell;
    const bool uses_file = m_run->request.chain && m_run->request.chain->aware;
    if (shell || (notified == 0 && !uses_file)) {
        kill_for(termination, m_options.patience.stop);
    }
}

} // namespace gpuq::supervisor
