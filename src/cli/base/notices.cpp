// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/notices.h"

#include "ports/host.h"
#include "report/ending_text.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto k_limit = 30s;
constexpr std::size_t k_longest = 1000;
constexpr const char* k_event = "GPUQ_NOTICE_EVENT";

std::string title(const Run& run, JobId job)
{
    return fmt::format("run {} ({})", job.value, run.request.name);
}

RunNotice notice_of(const Run& run, JobId job, RunNotice::Event event, std::string_view what)
{
    return {event, run.key.text(), std::to_string(job.value),
            fmt::format("{}{}", title(run, job), what)};
}

/// The values that a command gets: as variables, and in place of `{run}` and so on.
std::vector<std::pair<std::string, std::string>> values_of(const RunNotice& notice)
{
    return {{"event", std::string(word(notice.event))},
            {"key", sanitised(notice.key)},
            {"run", sanitised(notice.run)},
            {"text", clipped(sanitised(notice.text), k_longest)}};
}

/// Replaces in one pass, so that no value is searched for the names of others.
std::string filled(std::string_view word,
                   const std::vector<std::pair<std::string, std::string>>& values)
{
    std::string text;
    while (!word.empty()) {
        const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) {
            return word.starts_with(fmt::format("{{{}}}", value.first));
        });
        text += found == values.end() ? std::string(word.substr(0, 1)) : found->second;
        word.remove_prefix(found == values.end() ? 1 : found->first.size() + 2);
    }
    return text;
}

std::string in_capitals(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    return text;
}

} // namespace

std::string_view word(RunNotice::Event event)
{
    switch (event) {
    case RunNotice::Event::start:
        return "start";
    case RunNotice::Event::end:
        return "end";
    case RunNotice::Event::failure:
        return "failure";
    case RunNotice::Event::warning:
        break;
    }
    return "warning";
}

RunNotice start_notice(const Run& run, JobId job)
{
    return notice_of(run, job, RunNotice::Event::start, " has started");
}

RunNotice end_notice(const Run& run, JobId job, const Ending& ending)
{
    return notice_of(run, job,
                     is_failure(ending) ? RunNotice::Event::failure : RunNotice::Event::end,
                     " " + ending_text(ending, run.request));
}

RunNotice warning_notice(const Run& run, JobId job, std::string_view text)
{
    return notice_of(run, job, RunNotice::Event::warning, fmt::format(": {}", text));
}

Notices::Notices(Services& services)
    : m_services(services)
{
    const auto settings = services.settings();
    if (settings && settings->notify && !services.variable(k_event)) {
        m_command = *settings->notify;
    }
}

void Notices::give(const RunNotice& notice)
{
    if (m_command.empty()) {
        return;
    }
    const auto last = m_last.find(notice.key);
    if (last != m_last.end() && last->second == notice) {
        return;
    }
    m_last.insert_or_assign(notice.key, notice);
    const auto values = values_of(notice);
    std::vector<std::string> arguments = {m_command.front()};
    for (std::size_t i = 1; i < m_command.size(); ++i) {
        arguments.push_back(filled(m_command[i], values));
    }
    std::vector<std::string> variables;
    for (const auto& [name, value] : values) {
        variables.push_back(fmt::format("GPUQ_NOTICE_{}={}", in_capitals(name), value));
    }
    (void)m_services.host().leave_running(arguments, variables, k_limit);
}

} // namespace gpuq::cli
