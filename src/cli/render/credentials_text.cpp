// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/credentials_text.h"

#include "cli/render/run_table.h"
#include "report/ending_text.h"
#include "runs/chain.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

using credentials::Ticket;
using report::Column;
using report::Json;

enum class Next { start, renew, keytab, login, nothing };

struct Plan {
    Next next = Next::nothing;
    std::optional<Time> at;
};

Plan plan_of(const CredentialRecords& records, const RunStatus& status, Time now)
{
    const auto ticket = records.ticket(now);
    if (status.state == RunState::ended) {
        return {};
    }
    const bool is_good = ticket && ticket->end > now;
    if (!is_good && records.needs_login()) {
        return {Next::login, std::nullopt};
    }
    if (status.state != RunState::running) {
        return {Next::start, is_good ? std::optional(ticket->end) : std::nullopt};
    }
    if (records.state && records.state->next) {
        const bool renewed = is_good && good_until(*ticket) > ticket->end;
        return {records.needs_login() || renewed ? Next::renew : Next::keytab, records.state->next};
    }
    if (!is_good) {
        return {records.state ? Next::keytab : Next::start, std::nullopt};
    }
    return records.state ? Plan{Next::login, ticket->end} : Plan{Next::start, std::nullopt};
}

std::string_view word(Next next)
{
    switch (next) {
    case Next::start:
        return "start";
    case Next::renew:
        return "renew";
    case Next::keytab:
        return "keytab";
    case Next::login:
        return "login";
    case Next::nothing:
        break;
    }
    return "none";
}

std::string time_text(const std::optional<Time>& time, Time now)
{
    return time ? clock_text(*time, now) : "-";
}

std::optional<credentials::Forecast> forecast_of(const std::optional<Ticket>& ticket,
                                                 const std::optional<credentials::Need>& need)
{
    return ticket && need ? credentials::forecast(*ticket, *need) : std::nullopt;
}

std::string ticket_trouble(const CredentialRecords& records)
{
    return records.state ? credentials::describe(records.state->trouble, records.state->message)
                         : "";
}

} // namespace

credentials::Need need_of(const Request& request, Time now)
{
    credentials::Need need{now + request.walltime, now + request.walltime, 1, {}};
    if (request.chain) {
        need.link_until = now + length_of(*request.chain, LinkNumber{1});
        need.link_length = request.chain->link;
    }
    return need;
}

std::optional<credentials::Need> need_of(const RunStatus& status, Time now)
{
    if (!status.run || status.state == RunState::ended || status.state == RunState::unknown) {
        return std::nullopt;
    }
    const Request& request = status.run->request;
    if (status.state != RunState::running || !status.ends_at) {
        return need_of(request, std::max(now, status.expected_start.value_or(now)));
    }
    credentials::Need need{*status.ends_at, *status.ends_at, status.link.value, {}};
    if (request.chain && !status.links.empty()) {
        need.until = std::max(need.until, status.run->submitted_at + request.walltime);
    }
    if (request.chain) {
        need.link_length = request.chain->link;
        need.until = std::max(need.until, status.started_at.value_or(now) + request.walltime);
    }
    return need;
}

std::string forecast_text(const Ticket& ticket, const credentials::Need& need, Time now)
{
    if (ticket.end <= now) {
        return "the ticket has expired: kinit, then any gpuq command";
    }
    const auto found = credentials::forecast(ticket, need);
    return found ? credentials::describe(*found, need,
                                         [now](Time time) { return clock_text(time, now); })
                 : "";
}

std::vector<std::string> shortages(const std::vector<RunCredentials>& runs, Time now)
{
    std::vector<std::string> texts;
    for (const RunCredentials& one : runs) {
        const auto ticket = one.records.ticket(now);
        const auto need = need_of(one.status, now);
        const std::string text =
            ticket && need && one.records.needs_login() ? forecast_text(*ticket, *need, now) : "";
        if (!text.empty()) {
            texts.push_back(fmt::format("run {}: {}", run_title(one.status), text));
        }
    }
    return texts;
}

std::string next_text(const CredentialRecords& records, const RunStatus& status, Time now)
{
    const Plan plan = plan_of(records, status, now);
    switch (plan.next) {
    case Next::start:
        return "fetched when it starts";
    case Next::renew:
        return *plan.at <= now ? "being renewed" : "renews at " + moment_text(*plan.at, now);
    case Next::keytab:
        return plan.at && *plan.at > now ? "from the keytab at " + moment_text(*plan.at, now)
                                         : "from the keytab now";
    case Next::login:
        return plan.at ? fmt::format("log in before {}", clock_text(*plan.at, now))
                       : "log in: kinit, then any gpuq command";
    case Next::nothing:
        break;
    }
    return "-";
}

std::string trouble_text(const CredentialRecords& records)
{
    std::string text = ticket_trouble(records);
    if (!records.token_trouble.empty()) {
        text += (text.empty() ? "" : "; ") + records.token_trouble;
    }
    return text;
}

std::vector<std::pair<std::string, std::string>>
credential_fields(const CredentialRecords& records, const RunStatus& status, Time now)
{
    std::vector<std::pair<std::string, std::string>> fields;
    if (records.plan.token) {
        std::string text = token_text(records, status, now);
        if (!records.token_trouble.empty() && status.state != RunState::ended) {
            text += fmt::format(" ({})", records.token_trouble);
        }
        fields.emplace_back("token", text);
    }
    if (records.plan.principal.empty()) {
        return fields;
    }
    const auto ticket = records.ticket(now);
    std::string text = records.plan.principal;
    if (status.state == RunState::ended) {
        fields.emplace_back("ticket", text + ", wiped at its end");
        return fields;
    }
    if (ticket) {
        text += fmt::format(", {} {}", ticket->end <= now ? "expired" : "good until",
                            clock_text(ticket->end, now));
        text += ticket->renew_till
                    ? fmt::format(", renewable until {}", clock_text(*ticket->renew_till, now))
                    : ", not renewable";
    }
    text += "; " + next_text(records, status, now);
    if (const std::string trouble = ticket_trouble(records); !trouble.empty()) {
        text += fmt::format(" ({})", trouble);
    }
    fields.insert(fields.begin(), {"ticket", text});
    if (!records.plan.keytab.empty()) {
        fields.emplace_back("keytab", records.plan.keytab);
    }
    const auto need = need_of(status, now);
    if (ticket && need) {
        if (const std::string missing = forecast_text(*ticket, *need, now);
            !missing.empty() && records.needs_login()) {
            fields.emplace_back("forecast", missing);
        }
    }
    return fields;
}

std::string token_text(const CredentialRecords& records, const RunStatus& status, Time now)
{
    if (!records.plan.token) {
        return "-";
    }
    if (status.state == RunState::ended) {
        return "wiped at its end";
    }
    if (!records.token) {
        return "none";
    }
    const auto& expires = records.token->expires;
    return !expires          ? "present"
           : *expires <= now ? "expired " + clock_text(*expires, now)
                             : "good until " + clock_text(*expires, now);
}

report::Table credentials_table(const std::vector<RunCredentials>& runs, Time now)
{
    report::Table table;
    table.columns = {{"id", "ID", Column::Align::right},
                     {.name = "name",
                      .title = "NAME",
                      .shrink = Column::Shrink::yes,
                      .cut = Column::Cut::middle},
                     {"principal", "PRINCIPAL"},
                     {"ends", "ENDS"},
                     {"until", "RENEWABLE UNTIL"},
                     {"token", "TOKEN"},
                     {"next", "NEXT"},
                     {"trouble", "TROUBLE", Column::Align::left, Column::Shrink::yes}};
    for (const RunCredentials& one : runs) {
        const auto ticket = one.records.ticket(now);
        const bool has_ticket = !one.records.plan.principal.empty();
        table.rows.push_back({run_id(one.status),
                              one.status.run ? one.status.run->request.name : "?",
                              has_ticket ? one.records.plan.principal : "-",
                              time_text(ticket ? std::optional(ticket->end) : std::nullopt, now),
                              time_text(ticket ? ticket->renew_till : std::nullopt, now),
                              token_text(one.records, one.status, now),
                              has_ticket ? next_text(one.records, one.status, now) : "-",
                              trouble_text(one.records)});
    }
    return table;
}

Json credentials_json(const std::optional<CredentialRecords>& records, const RunStatus& status,
                      Time now)
{
    if (!records) {
        return {};
    }
    const auto ticket = records->ticket(now);
    const Plan plan = plan_of(*records, status, now);
    const auto need = need_of(status, now);
    const auto missing = records->needs_login() ? forecast_of(ticket, need) : std::nullopt;
    const auto& state = records->state;
    return Json::object(
        {{"principal", records->plan.principal.empty() ? Json() : Json(records->plan.principal)},
         {"token", records->plan.token},
         {"token_expires", records->token ? Json(records->token->expires) : Json()},
         {"ticket_end", ticket ? Json(ticket->end) : Json()},
         {"renewable_until", ticket ? Json(ticket->renew_till) : Json()},
         {"forwardable", ticket ? Json(ticket->forwardable) : Json()},
         {"next_action", word(plan.next)},
         {"next_at", plan.at},
         {"trouble", state ? Json(credentials::word(state->trouble)) : Json()},
         {"last_error", state && !state->message.empty() ? Json(state->message) : Json()},
         {"token_error", records->token_trouble.empty() ? Json() : Json(records->token_trouble)},
         {"renewals", state ? Json(state->renewals) : Json()},
         {"afs", state ? Json(state->has_afs) : Json()},
         {"keytab", records->plan.keytab.empty() ? Json() : Json(records->plan.keytab)},
         {"when_short", gpuq::word(records->plan.when_short)},
         {"good_until", ticket ? Json(credentials::good_until(*ticket)) : Json()},
         {"needed_until", need ? Json(need->until) : Json()},
         {"waiting_link", missing ? Json(missing->waiting_link) : Json()}});
}

Json::Members keepalive_document(const std::vector<RunCredentials>& runs, Time now)
{
    Json::Elements list;
    for (const RunCredentials& one : runs) {
        list.push_back(
            Json::object({{"key", one.status.key.text()},
                          {"job", one.status.job ? Json(one.status.job->job) : Json()},
                          {"name", one.status.run ? Json(one.status.run->request.name) : Json()},
                          {"state", gpuq::word(one.status.state)},
                          {"credentials", credentials_json(one.records, one.status, now)}}));
    }
    return {{"runs", Json::array(std::move(list))}};
}

} // namespace gpuq::cli
