// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/tickets.h"

#include "cli/base/status_sources.h"
#include "cli/queries/site_context.h"
#include "core/fnv.h"
#include "core/timestamp.h"
#include "credentials/keeping.h"
#include "credentials/keytab.h"
#include "ports/cluster.h"
#include "ports/host.h"
#include "runs/chain.h"
#include "runs/evidence.h"
#include "runs/next_link.h"
#include "runs/query_status.h"
#include "runs/records/own_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <poll.h>

// Two tasks: login_ticket() and add_keytab() collect the credentials for a new run; refresh_all()
// updates those of active runs. It delivers the login's ticket, renews the tickets of waiting runs
// in their stores, fetches new bearer tokens, and releases links that were held for a ticket. Every
// verb that queries runs does this, so files in cache/ limit how often all of a user's processes
// try. A token command may hang; only the process that holds refreshes_as() waits for it.

namespace gpuq::cli {
namespace {

/// How often the background process refreshes; it ends as soon after the last run.
constexpr std::chrono::milliseconds k_round{5000};
constexpr int k_asked = 120; ///< rounds: ten minutes

/// Without `run`, `again`, `shell` and `rehearse`: the start of a run should not wait for another
/// run's ticket.
constexpr std::string_view k_refreshing[] = {
    "attach", "logs",  "ls",     "top",   "why",    "show",    "stop",      "extend",
    "save",   "clean", "resume", "usage", "exempt", "profile", "keepalive", "wait"};

std::string with_user(std::string directory)
{
    const std::string user = user_name();
    for (auto at = directory.find("%u"); at != std::string::npos; at = directory.find("%u", at)) {
        directory.replace(at, 2, user);
        at += user.size();
    }
    return directory;
}

Result<std::string> directory_of(Services& services, const Settings& settings, const RunKey& key)
{
    if (settings.credentials_dir) {
        const std::string directory = with_user(*settings.credentials_dir);
        if (!directory.starts_with('/')) {
            return fail(Error::Kind::usage, "credentials_dir is not an absolute path");
        }
        return fmt::format("{}/{}", directory, key.text());
    }
    TRY_ASSIGN(Store* const store, services.store());
    return usual_credential_directory(store->root(), key);
}

/// The active runs that have credentials: most users have none.
std::vector<RunKey> with_credentials(Store& store)
{
    auto keys = active_runs(store);
    if (!keys) {
        return {};
    }
    std::erase_if(*keys, [&](const RunKey& key) { return !store.size(credential_plan_json(key)); });
    return *std::move(keys);
}

/// The run, if a link is held for its ticket and the ticket now suffices.
std::optional<Run> run_that_may_continue(Services& services, Store& store, const RunKey& key)
{
    const auto text = store.read(held_json(key));
    const auto held = text ? held_from_json(*text) : Result<Held>(text.error());
    auto run = held ? read_run(store, key) : Result<Run>(held.error());
    if (!run || !run->request.chain) {
        return std::nullopt;
    }
    const auto length = length_of(*run->request.chain, held->link);
    const bool lacks =
        short_of_ticket(store, services.secret_files(), key, length, services.clock().now())
            .has_value();
    return lacks ? std::nullopt : std::optional(*std::move(run));
}

/// The credentials of a waiting run whose ticket has reached half its lifetime: no other process
/// renews it. Nothing if it need not be renewed.
std::optional<CredentialPlan> due_while_it_waits(Services& services, Store& store,
                                                 const RunKey& key, Time now)
{
    const auto text = store.read(credential_plan_json(key));
    const auto plan =
        text ? credential_plan_from_json(*text) : Result<CredentialPlan>(text.error());
    if (!plan || is_kept_alive(store, key)) {
        return std::nullopt;
    }
    const auto stored = stored_ticket(services.secret_files(), plan->directory, now);
    const bool is_due = stored && stored->ticket.end > now &&
                        now >= credentials::renewed_first(stored->ticket, 1) &&
                        credentials::good_until(stored->ticket) > stored->ticket.end;
    return is_due ? std::optional(*plan) : std::nullopt;
}

constexpr const char* k_copy = "renewing"; ///< in a run's store, during a renewal

/// Renews a copy of the ticket, which replaces the old one if it is better.
void renew_in_store(Services& services, const std::string& kinit, const CredentialPlan& plan,
                    Time now)
{
    SecretFiles& files = services.secret_files();
    const auto stored = stored_ticket(files, plan.directory, now);
    if (!stored || !files.write(plan.directory, k_copy, stored->cache)) {
        return;
    }
    const auto ended =
        services.host().run({kinit, "-R", "-c", fmt::format("FILE:{}/{}", plan.directory, k_copy)});
    const auto copy = files.read(plan.directory, k_copy);
    const auto renewed =
        copy ? credentials::ticket_in(*copy) : Result<credentials::Ticket>(copy.error());
    if (ended && ended->status == 0 && renewed && renewed->principal == stored->ticket.principal &&
        renewed->end > stored->ticket.end) {
        (void)files.move(plan.directory, k_copy, k_renewed);
    }
    (void)files.remove(plan.directory, k_copy);
}

/// How long a KDC that does not respond may delay a command, once a minute.
constexpr std::chrono::milliseconds k_renewing{2000};
constexpr std::chrono::seconds k_between_renewals{60};
constexpr const char* k_last_renewals = "cache/tickets";

bool was_tried_lately(Store& store, const char* file, std::chrono::seconds lately, Time now)
{
    const auto text = store.read(file);
    const auto at = text ? time_from_iso8601(*text) : std::nullopt;
    return at && *at <= now && now - *at < lately;
}

constexpr std::chrono::seconds k_between_releases{15};
constexpr const char* k_last_releases = "cache/releases";

/// Releases held links of runs on this cluster: from one command at a time, and not from each one
/// if Slurm refuses.
void allow_to_continue(Services& services, Store& store, const std::vector<RunKey>& active)
{
    std::vector<Run> runs;
    for (const RunKey& key : active) {
        if (auto run = run_that_may_continue(services, store, key)) {
            runs.push_back(*std::move(run));
        }
    }
    const Time now = services.clock().now();
    if (runs.empty() || was_tried_lately(store, k_last_releases, k_between_releases, now)) {
        return;
    }
    (void)store.write(k_last_releases, to_iso8601(now));
    const auto cluster = services.cluster();
    const auto name = cluster ? (*cluster)->name() : Result<std::string>(cluster.error());
    for (const Run& run : runs) {
        if (name && *name == run.cluster) {
            (void)release_link(store, **cluster, services.clock(), run.key); // otherwise a later
                                                                             // command does
        }
    }
}

void renew_waiting(Services& services, Store& store, const std::vector<RunKey>& active)
{
    const Time now = services.clock().now();
    std::vector<std::function<std::string()>> work;
    std::vector<std::string> directories;
    for (const RunKey& key : active) {
        if (const auto plan = due_while_it_waits(services, store, key, now)) {
            directories.push_back(plan->directory);
            work.emplace_back([&services, plan, now]() -> std::string {
                if (const auto kinit = services.host().program("kinit")) {
                    renew_in_store(services, *kinit, *plan, now);
                }
                return "";
            });
        }
    }
    if (!work.empty() && !was_tried_lately(store, k_last_renewals, k_between_renewals, now)) {
        (void)store.write(k_last_renewals, to_iso8601(now));
        const auto answers = services.host().apart(work, k_renewing);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            if (answers[i].kind != Host::Answer::Kind::done) {
                (void)services.secret_files().remove(directories[i],
                                                     k_copy); // the process that would do
                                                              // so was killed
            }
        }
    }
}

constexpr std::string_view k_no_kerberos = "the run gets no Kerberos ticket: ";

LoginTicket ticket_of_login(Services& services, const RunKey& key)
{
    LoginTicket found;
    auto cache = services.login_tickets().cache();
    if (!cache) {
        if (cache.error().kind != Error::Kind::missing) {
            found.problem = fmt::format("{}{}", k_no_kerberos, cache.error().text);
        }
        return found;
    }
    const auto ticket = credentials::ticket_in(*cache);
    const auto settings = services.settings();
    const auto directory =
        settings ? directory_of(services, *settings, key) : Result<std::string>(settings.error());
    if (!ticket) {
        found.problem =
            fmt::format("{}the login's ticket is {}", k_no_kerberos, ticket.error().text);
        return found;
    }
    if (ticket->end <= services.clock().now()) {
        found.problem =
            fmt::format("{}the login's ticket has expired; kinit gets another", k_no_kerberos);
        return found;
    }
    if (!directory) {
        found.problem = fmt::format("{}{}", k_no_kerberos, directory.error().text);
        return found;
    }
    found.plan = CredentialPlan{ticket->principal, *directory, WhenShort::hold,
                                settings->aklog.value_or(""), ""};
    found.ticket = *ticket;
    found.cache = *std::move(cache);
    return found;
}

/// The command queries a server for a token, and may hang.
constexpr std::chrono::milliseconds k_token_patience{10'000};
constexpr std::chrono::seconds k_between_tokens{5};
constexpr std::chrono::seconds k_after_token_failure{60};
constexpr const char* k_last_tokens = "cache/tokens";
constexpr char k_well = '+'; ///< the first byte of a successful result from a separate process

/// The output of the site's or the user's command, or its error.
Result<std::string> token_by_command(Services& services, const std::vector<std::string>& command)
{
    const auto answers = services.host().apart(
        {[&]() -> std::string {
            const auto ended = services.host().run(command, Host::Heard::output);
            if (!ended) {
                return ended.error().text;
            }
            return ended->status == 0 ? k_well + ended->output
                                      : fmt::format("{} exited with {}; run it by hand to see why",
                                                    command.front(), ended->status);
        }},
        k_token_patience);
    const Host::Answer& answer = answers.front();
    if (answer.kind == Host::Answer::Kind::done && answer.text.starts_with(k_well)) {
        return answer.text.substr(1);
    }
    const bool late = answer.kind == Host::Answer::Kind::late;
    const std::string reason = late ? "no answer in 10 s" : answer.text;
    return fail(Error::Kind::io,
                fmt::format("token_command: {}", reason.substr(0, reason.find('\n'))));
}

struct LoginToken {
    std::string text;    ///< secret; empty: none
    std::string problem; ///< empty: no token was expected
};

/// Lifetime that suffices for the start of a run, which does not wait for the refresh.
constexpr std::chrono::minutes k_enough_of_a_token{5};
enum class Life {
    young,  ///< in the first half of its lifetime
    enough, ///< valid for k_enough_of_a_token
};

/// The login's token if its remaining lifetime suffices, else a new one from the command, if there
/// is one.
Result<std::string> good_token(Services& services, const Settings& settings, Life life)
{
    auto found = services.login_tickets().token();
    if (!settings.token_command) {
        return found;
    }
    const auto text = found ? credentials::token_text(*found) : found;
    const auto facts = text ? credentials::token_facts(*text) : credentials::Token{};
    const Time now = services.clock().now();
    const bool is_good =
        facts.expires && (life == Life::young ? now < refreshed_at(facts, now)
                                              : *facts.expires - now >= k_enough_of_a_token);
    return is_good ? found : token_by_command(services, *settings.token_command);
}

LoginToken login_token(Services& services, const Settings& settings, Life life)
{
    auto found = good_token(services, settings, life);
    auto text = found ? credentials::token_text(*found) : found;
    if (!text) {
        const bool none = text.error().kind == Error::Kind::missing;
        return {"", none ? "" : text.error().text};
    }
    const auto expires = credentials::token_facts(*text).expires;
    if (expires && *expires <= services.clock().now()) {
        return {"", "the login's token has expired"};
    }
    return {*std::move(text), ""};
}

/// False if a token was expected and there is none.
bool refresh_tokens(Services& services, Store& store, const std::vector<RunKey>& active,
                    TokenCommand where)
{
    const Time now = services.clock().now();
    const auto due = token_due(store, services.secret_files(), active, now);
    const auto settings = due ? services.settings() : Result<Settings>(Settings{});
    if (!due || !settings) {
        return true;
    }
    const bool by_command = settings->token_command.has_value();
    if (by_command &&
        (*due > now || was_tried_lately(store, k_last_tokens, k_between_tokens, now))) {
        return true;
    }
    if (by_command && where != TokenCommand::here) {
        if (where == TokenCommand::elsewhere) {
            leave_keeper(services);
        }
        return true;
    }
    if (by_command) {
        (void)store.write(k_last_tokens, to_iso8601(now));
    }
    LoginToken token = login_token(services, *settings, Life::young);
    if (!token.text.empty()) {
        (void)deliver_token(store, services.secret_files(), token.text, active);
    }
    if (!token.problem.empty() && *due <= now) {
        (void)store.write(k_token_trouble, token.problem);
    } else if (store.read(k_token_trouble)) {
        (void)store.remove(k_token_trouble);
    }
    return !token.text.empty();
}

/// Does the work of `refresh_tickets`; returns the result of `refresh_tokens`.
bool refresh_all(Services& services, TokenCommand where)
{
    const auto cache = services.login_tickets().cache();
    const auto store = services.store();
    const auto runs = store ? with_credentials(**store) : std::vector<RunKey>{};
    if (runs.empty()) {
        return true;
    }
    if (cache) {
        (void)deliver(**store, services.secret_files(), *cache, runs, services.clock().now());
    }
    renew_waiting(services, **store, runs);
    const bool is_well = refresh_tokens(services, **store, runs, where);
    allow_to_continue(services, **store, runs);
    return is_well;
}

/// Whether an active run has credentials. The status query takes ended runs off the list.
bool has_any(Services& services, Store& store, SlurmQuery query)
{
    const RunStatuses statuses =
        query_status(status_sources(services, store), with_credentials(store), query);
    return std::any_of(statuses.runs.begin(), statuses.runs.end(),
                       [](const RunStatus& status) { return status.state != RunState::ended; });
}

} // namespace

LoginTicket login_ticket(Services& services, const RunKey& key, const std::string& known)
{
    LoginTicket found = ticket_of_login(services, key);
    const auto settings = services.settings();
    LoginToken token = !known.empty() ? LoginToken{known, ""}
                       : settings     ? login_token(services, *settings, Life::enough)
                                      : LoginToken{};
    constexpr std::string_view k_no_token = "the run gets no bearer token: ";
    if (!token.problem.empty()) {
        found.token_problem = fmt::format("{}{}", k_no_token, token.problem);
    }
    if (token.text.empty()) {
        return found;
    }
    if (!found.plan) {
        const auto directory = directory_of(services, *settings, key);
        if (!directory) {
            found.token_problem = fmt::format("{}{}", k_no_token, directory.error().text);
            return found;
        }
        found.plan = CredentialPlan{};
        found.plan->directory = *directory;
    }
    found.plan->token = true;
    found.token = std::move(token.text);
    services.forget_variable("BEARER_TOKEN");
    return found;
}

Result<void> add_keytab(Services& services, const Run& run, const std::string& path,
                        LoginTicket& ticket)
{
    const std::string whole = path.starts_with('/') ? path : run.request.work_dir + "/" + path;
    auto bytes = services.secret_files().read_own(whole);
    if (!bytes) {
        return fail(bytes.error().kind, "--keytab: " + bytes.error().text);
    }
    const auto principals = credentials::principals_in_keytab(*bytes);
    ::explicit_bzero(bytes->data(), bytes->size());
    if (!principals) {
        return fail(Error::Kind::usage,
                    fmt::format("--keytab: {}: {}", whole, principals.error().text));
    }
    if (!ticket.plan) {
        TRY_ASSIGN(const Settings settings, services.settings());
        TRY_ASSIGN(const std::string directory, directory_of(services, settings, run.key));
        ticket.plan = CredentialPlan{};
        ticket.plan->directory = directory;
        ticket.plan->aklog = settings.aklog.value_or("");
    }
    CredentialPlan& plan = *ticket.plan;
    if (plan.principal.empty()) {
        plan.principal = principals->front();
    } else if (std::find(principals->begin(), principals->end(), plan.principal) ==
               principals->end()) {
        return fail(Error::Kind::usage,
                    fmt::format("--keytab: {} has keys of {}, but your ticket is for {}", whole,
                                fmt::join(*principals, ", "), plan.principal));
    }
    plan.keytab = whole;
    if (ticket.problem.starts_with(k_no_kerberos)) {
        ticket.problem.clear(); // the keytab provides one
    }
    return {};
}

void forget(LoginTicket& ticket)
{
    for (std::string* const secret : {&ticket.cache, &ticket.token}) {
        ::explicit_bzero(secret->data(), secret->size());
        secret->clear();
    }
}

Result<void> store_ticket(SecretFiles& files, const LoginTicket& ticket)
{
    TRY(files.make_directory(ticket.plan->directory));
    if (!ticket.cache.empty()) {
        TRY(files.write(ticket.plan->directory, k_delivered, ticket.cache));
    }
    return ticket.token.empty() ? Result<void>()
                                : files.write(ticket.plan->directory, k_token, ticket.token);
}

void leave_keeper(Services& services)
{
    if (const auto program = services.program()) {
        (void)services.host().leave_running({*program, "keepalive", "--stay"});
    }
}

std::string refreshes_as(Store& store)
{
    return own_names(store).lock(fmt::format("keepalive-{:016x}", fnv1a(store.root())));
}

void keep_refreshing(Services& services)
{
    const auto store = services.store();
    if (!store || !services.host().hold(refreshes_as(**store))) {
        refresh_tickets(services, TokenCommand::here);
        return;
    }
    Time next_token{};
    // Slurm is queried seldom, for runs whose node died so that they ended without a record.
    for (int round = 1; has_any(services, **store,
                                round % k_asked == 0 ? SlurmQuery::if_needed : SlurmQuery::never);
         ++round) {
        const Time now = services.clock().now();
        const bool asks = now >= next_token;
        if (asks && !refresh_all(services, TokenCommand::here)) {
            next_token = now + k_after_token_failure;
        } else if (!asks) {
            refresh_all(services, TokenCommand::nowhere);
        }
        ::poll(nullptr, 0, static_cast<int>(k_round.count()));
    }
}

bool refreshes_tickets(std::string_view verb)
{
    return std::find(std::begin(k_refreshing), std::end(k_refreshing), verb) !=
           std::end(k_refreshing);
}

void refresh_tickets(Services& services, TokenCommand where)
{
    (void)refresh_all(services, where);
}

} // namespace gpuq::cli
