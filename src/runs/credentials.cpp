// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/credentials.h"

#include "core/layout.h"
#include "core/timestamp.h"
#include "credentials/forecast.h"
#include "runs/evidence.h"
#include "runs/records/json_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace gpuq {
namespace {

using credentials::Ticket;
using credentials::Trouble;
using nlohmann::json;

constexpr std::pair<WhenShort, std::string_view> k_when_short[] = {
    {WhenShort::hold, "hold"}, {WhenShort::run, "run"}, {WhenShort::fail, "fail"}};

constexpr Trouble k_troubles[] = {Trouble::none,       Trouble::unreachable, Trouble::not_renewable,
                                  Trouble::at_limit,   Trouble::refused,     Trouble::expired,
                                  Trouble::gone,       Trouble::no_keytab,   Trouble::no_key,
                                  Trouble::key_refused};

json json_of(const std::optional<Time>& time)
{
    return time ? json(to_iso8601(*time)) : json();
}

json json_of(const std::optional<Ticket>& ticket)
{
    if (!ticket) {
        return {};
    }
    return {{"principal", ticket->principal},     {"start", to_iso8601(ticket->start)},
            {"end", to_iso8601(ticket->end)},     {"renew_till", json_of(ticket->renew_till)},
            {"forwardable", ticket->forwardable}, {"login", to_iso8601(ticket->login)}};
}

std::optional<Ticket> ticket_of(const json& object, const char* name)
{
    const auto field = object.find(name);
    if (field == object.end() || !field->is_object()) {
        return std::nullopt;
    }
    const auto start = time_in(*field, "start");
    const auto end = time_in(*field, "end");
    if (!start || !end) {
        return std::nullopt;
    }
    return Ticket{text_in(*field, "principal").value_or(""),
                  *start,
                  *end,
                  time_in(*field, "renew_till"),
                  flag_in(*field, "forwardable"),
                  time_in(*field, "login").value_or(*start)};
}

json json_of(const std::optional<credentials::Token>& token)
{
    return token ? json{{"issued", json_of(token->issued)}, {"expires", json_of(token->expires)}}
                 : json();
}

std::optional<credentials::Token> token_of(const json& object, const char* name)
{
    const auto field = object.find(name);
    if (field == object.end() || !field->is_object()) {
        return std::nullopt;
    }
    return credentials::Token{time_in(*field, "issued"), time_in(*field, "expires")};
}

Trouble trouble_of(const std::string& text)
{
    const auto* const found = std::find_if(std::begin(k_troubles), std::end(k_troubles),
                                           [&](Trouble one) { return word(one) == text; });
    return found == std::end(k_troubles) ? Trouble::unreachable : *found;
}

std::optional<CredentialPlan> plan_of(Store& store, const RunKey& key)
{
    const auto text = store.read(credential_plan_json(key));
    auto plan = text ? credential_plan_from_json(*text) : Result<CredentialPlan>(text.error());
    return plan ? std::optional(*std::move(plan)) : std::nullopt;
}

std::optional<credentials::Token> stored_token(SecretFiles& files, const std::string& directory)
{
    const auto text = files.read(directory, k_token);
    return text ? std::optional(credentials::token_facts(*text)) : std::nullopt;
}

std::optional<credentials::Token> better_of(const std::optional<credentials::Token>& one,
                                            const std::optional<credentials::Token>& other)
{
    return one && other ? (is_better(*one, *other) ? one : other) : one ? one : other;
}

/// The state of the newest link that has one.
std::optional<CredentialState> newest_state(Store& store, const RunKey& key)
{
    std::optional<CredentialState> newest;
    for (LinkNumber link; store.size(layout::job_json(key, link)); ++link.value) {
        const auto text = store.read(credential_state_json(key, link));
        if (const auto state =
                text ? credential_state_from_json(*text) : Result<CredentialState>(text.error())) {
            newest = *state;
        }
    }
    return newest;
}

/// The plan of a run that has not ended: credentials removed at its end must not come back.
std::optional<CredentialPlan> living_plan(Store& store, const RunKey& key)
{
    auto plan = plan_of(store, key);
    return plan && !read_ending(store, key) ? std::move(plan) : std::nullopt;
}

std::optional<credentials::Token> known_token(SecretFiles& files, const CredentialPlan& plan,
                                              const std::optional<CredentialState>& state)
{
    return better_of(state ? state->token : std::nullopt,
                     plan.token ? stored_token(files, plan.directory) : std::nullopt);
}

/// When the token on the node was obtained, or else when the one in the store was written.
Time token_got(SecretFiles& files, const CredentialPlan& plan,
               const std::optional<CredentialState>& state, Time now)
{
    if (state && state->token) {
        return std::min(state->token_got.value_or(state->at), now);
    }
    const auto written = files.written_at(plan.directory, k_token);
    return written ? std::min(*written, now) : now;
}

} // namespace

std::string_view word(WhenShort what)
{
    return k_when_short[static_cast<std::size_t>(what)].second;
}

std::optional<WhenShort> when_short_from_word(std::string_view text)
{
    for (const auto& [what, name] : k_when_short) {
        if (name == text) {
            return what;
        }
    }
    return std::nullopt;
}

std::string credential_plan_json(const RunKey& key)
{
    return fmt::format("{}/{}", layout::run_dir(key), k_credential_plan);
}

std::string to_json(const CredentialPlan& plan)
{
    return document_of({{"principal", plan.principal},
                        {"folder", plan.directory},
                        {"when_short", word(plan.when_short)},
                        {"aklog", plan.aklog},
                        {"keytab", plan.keytab},
                        {"token", plan.token}});
}

Result<CredentialPlan> credential_plan_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, document_in(text, k_credential_plan));
    CredentialPlan plan{text_in(document, "principal").value_or(""),
                        text_in(document, "folder").value_or(""),
                        WhenShort::hold,
                        text_in(document, "aklog").value_or(""),
                        text_in(document, "keytab").value_or(""),
                        flag_in(document, "token")};
    plan.when_short = when_short_from_word(text_in(document, "when_short").value_or(""))
                          .value_or(WhenShort::hold);
    if ((plan.principal.empty() && !plan.token) || !plan.directory.starts_with('/')) {
        return fail(Error::Kind::usage, fmt::format("{} contains no directory", k_credential_plan));
    }
    return plan;
}

bool is_of(const CredentialPlan& plan, const RunKey& key)
{
    return plan.directory.find(key.text()) != std::string::npos;
}

std::string usual_credential_directory(const std::string& state_dir, const RunKey& key)
{
    return fmt::format("{}/{}/credentials", state_dir, layout::run_dir(key));
}

std::string credential_state_json(const RunKey& key, LinkNumber link)
{
    return fmt::format("{}/{}", layout::link_dir(key, link), k_credential_plan);
}

std::string to_json(const CredentialState& state)
{
    return document_of({{"at", to_iso8601(state.at)},
                        {"ticket", json_of(state.ticket)},
                        {"next", json_of(state.next)},
                        {"trouble", word(state.trouble)},
                        {"words", state.message},
                        {"renewals", state.renewals},
                        {"afs", state.has_afs},
                        {"token", json_of(state.token)},
                        {"token_got", json_of(state.token_got)}});
}

Result<CredentialState> credential_state_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, document_in(text, k_credential_plan));
    CredentialState state;
    const auto at = time_in(document, "at");
    if (!at) {
        return fail(Error::Kind::usage, fmt::format("{} contains no time", k_credential_plan));
    }
    state.at = *at;
    state.ticket = ticket_of(document, "ticket");
    state.next = time_in(document, "next");
    state.trouble = trouble_of(text_in(document, "trouble").value_or(""));
    state.message = text_in(document, "words").value_or("");
    const auto renewals = document.find("renewals");
    if (renewals != document.end() && renewals->is_number_unsigned()) {
        state.renewals = static_cast<int>(
            std::min<std::uint64_t>(renewals->get<std::uint64_t>(), 1'000'000'000));
    }
    state.has_afs = flag_in(document, "afs");
    state.token = token_of(document, "token");
    state.token_got = time_in(document, "token_got");
    return state;
}

Result<StoredTicket> stored_ticket(SecretFiles& files, const std::string& directory, Time now)
{
    std::optional<StoredTicket> best;
    for (const char* name : {k_delivered, k_renewed}) {
        auto cache = files.read(directory, name);
        const auto ticket = cache ? credentials::ticket_in(*cache) : Result<Ticket>(cache.error());
        if (!ticket) {
            if (ticket.error().kind != Error::Kind::missing && !best &&
                ticket.error().kind != Error::Kind::usage) {
                return ticket.error();
            }
            continue;
        }
        if (!best || is_better(*ticket, best->ticket, now)) {
            best = StoredTicket{*std::move(cache), *ticket};
        } else {
            ::explicit_bzero(cache->data(), cache->size());
        }
    }
    if (!best) {
        return fail(Error::Kind::missing, "no ticket in the run's store");
    }
    return *std::move(best);
}

std::string held_json(const RunKey& key)
{
    return layout::run_dir(key) + "/held.json";
}

std::string to_json(const Held& held)
{
    return document_of({{"link", held.link.value}, {"at", to_iso8601(held.at)}});
}

Result<Held> held_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, document_in(text, "held.json"));
    const auto link = document.find("link");
    const auto at = time_in(document, "at");
    if (link == document.end() || !link->is_number_unsigned() ||
        !std::in_range<int>(link->get<std::uint64_t>()) || !at) {
        return fail(Error::Kind::usage, "held.json contains no link");
    }
    return Held{LinkNumber{link->get<int>()}, *at};
}

std::optional<WhenShort> short_of_ticket(Store& store, SecretFiles& files, const RunKey& key,
                                         std::chrono::seconds length, Time now)
{
    const auto plan = plan_of(store, key);
    if (!plan || plan->principal.empty() || plan->when_short == WhenShort::run) {
        return std::nullopt;
    }
    const auto stored = stored_ticket(files, plan->directory, now);
    const bool enough =
        stored && (plan->keytab.empty() ? credentials::may_begin(stored->ticket, length, now)
                                        : stored->ticket.end > now);
    return enough ? std::nullopt : std::optional(plan->when_short);
}

bool is_kept_alive(Store& store, const RunKey& key)
{
    return newest_state(store, key).has_value();
}

std::vector<RunKey> deliver(Store& store, SecretFiles& files, const std::string& login_cache,
                            const std::vector<RunKey>& active, Time now)
{
    std::vector<RunKey> served;
    const auto login = credentials::ticket_in(login_cache);
    if (!login || login->end <= now) {
        return served;
    }
    for (const RunKey& key : active) {
        const auto plan = living_plan(store, key);
        if (!plan || plan->principal != login->principal) {
            continue;
        }
        const auto state = newest_state(store, key);
        const auto waiting = stored_ticket(files, plan->directory, now);
        const bool has_as_good =
            (state && state->ticket && !is_better(*login, *state->ticket, now)) ||
            (waiting && !is_better(*login, waiting->ticket, now));
        if (!has_as_good && files.make_directory(plan->directory) &&
            files.write(plan->directory, k_delivered, login_cache)) {
            served.push_back(key);
        }
    }
    return served;
}

std::vector<RunKey> deliver_token(Store& store, SecretFiles& files, const std::string& token,
                                  const std::vector<RunKey>& active)
{
    std::vector<RunKey> served;
    const credentials::Token facts = credentials::token_facts(token);
    for (const RunKey& key : active) {
        const auto plan = living_plan(store, key);
        if (!plan || !plan->token) {
            continue;
        }
        const auto known = known_token(files, *plan, newest_state(store, key));
        const auto text = files.read(plan->directory, k_token);
        if ((!known || is_better(facts, *known)) && !(text && *text == token) &&
            files.make_directory(plan->directory) && files.write(plan->directory, k_token, token)) {
            served.push_back(key);
        }
    }
    return served;
}

std::optional<Time> token_due(Store& store, SecretFiles& files, const std::vector<RunKey>& active,
                              Time now)
{
    std::optional<Time> first;
    for (const RunKey& key : active) {
        const auto plan = living_plan(store, key);
        if (!plan || !plan->token) {
            continue;
        }
        const auto state = newest_state(store, key);
        const auto known = known_token(files, *plan, state);
        const Time due = known ? refreshed_at(*known, token_got(files, *plan, state, now)) : now;
        first = std::min(first.value_or(due), due);
    }
    return first;
}

void forget_credentials(Store& store, SecretFiles& files, const RunKey& key)
{
    const auto plan = plan_of(store, key);
    if (plan && is_of(*plan, key)) {
        (void)files.remove_directory(plan->directory); // `gpuq clean` tries again
    }
}

std::optional<Ticket> CredentialRecords::ticket(Time now) const
{
    if (state && state->ticket && waiting) {
        return is_better(*waiting, *state->ticket, now) ? waiting : state->ticket;
    }
    return waiting ? waiting : state ? state->ticket : std::nullopt;
}

bool CredentialRecords::needs_login() const
{
    using credentials::Trouble;
    return plan.keytab.empty() || (state && (credentials::is_of_keytab(state->trouble) ||
                                             state->trouble == Trouble::refused));
}

std::optional<CredentialRecords> credential_records(Store& store, SecretFiles& files,
                                                    const RunKey& key, LinkNumber link, Time now)
{
    auto plan = plan_of(store, key);
    if (!plan) {
        return std::nullopt;
    }
    CredentialRecords records;
    records.plan = *std::move(plan);
    const auto text = store.read(credential_state_json(key, link));
    if (const auto state =
            text ? credential_state_from_json(*text) : Result<CredentialState>(text.error())) {
        records.state = *state;
    }
    if (const auto waiting = stored_ticket(files, records.plan.directory, now)) {
        records.waiting = waiting->ticket;
    }
    records.token = known_token(files, records.plan, records.state);
    if (const auto trouble = store.read(k_token_trouble); records.plan.token && trouble) {
        records.token_trouble = *trouble;
    }
    return records;
}

} // namespace gpuq
