// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/tickets.h"

#include "cli/surroundings.h"
#include "runs/chain.h"
#include "runs/evidence.h"
#include "runs/next_link.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

/// `run`, `shell` and `rehearse` are not among them: a run's start waits for nothing.
constexpr std::string_view k_refreshing[] = {"attach", "logs",  "ls",     "top",     "why",
                                             "show",   "stop",  "extend", "save",    "clean",
                                             "resume", "usage", "exempt", "profile", "keepalive"};

std::string with_user(std::string folder)
{
    const std::string user = user_name();
    for (auto at = folder.find("%u"); at != std::string::npos; at = folder.find("%u", at)) {
        folder.replace(at, 2, user);
        at += user.size();
    }
    return folder;
}

Result<std::string> folder_of(Doors& doors, const Settings& settings, const RunKey& key)
{
    if (settings.credentials_dir) {
        const std::string folder = with_user(*settings.credentials_dir);
        if (!folder.starts_with('/')) {
            return fail(Error::Kind::usage, "credentials_dir is no absolute path");
        }
        return fmt::format("{}/{}", folder, key.text());
    }
    TRY_ASSIGN(Store* const store, doors.store());
    return usual_credential_folder(store->root(), key);
}

/// A link that was held for its ticket, and has one now.
void let_go_on(Doors& doors, Store& store, const RunKey& key)
{
    const auto text = store.read(held_json(key));
    const auto held = text ? held_from_json(*text) : Result<Held>(text.error());
    const auto run = held ? read_run(store, key) : Result<Run>(held.error());
    if (!run || !run->request.chain) {
        return;
    }
    const auto length = length_of(*run->request.chain, held->link);
    if (short_of_ticket(store, doors.secret_files(), key, length, doors.clock().now())) {
        return;
    }
    if (const auto cluster = doors.cluster()) {
        (void)release_link(store, **cluster, doors.clock(), key); // the next command tries again
    }
}

} // namespace

LoginTicket login_ticket(Doors& doors, const RunKey& key)
{
    LoginTicket found;
    auto cache = doors.login_tickets().cache();
    if (!cache) {
        if (cache.error().kind != Error::Kind::missing) {
            found.problem = "the run gets no Kerberos ticket: " + cache.error().text;
        }
        return found;
    }
    const auto ticket = credentials::ticket_in(*cache);
    const auto settings = doors.settings();
    const auto folder =
        settings ? folder_of(doors, *settings, key) : Result<std::string>(settings.error());
    if (!ticket || ticket->end <= doors.clock().now()) {
        return found; // none, or one of yesterday: as if there were no Kerberos here
    }
    if (!folder) {
        found.problem = "the run gets no Kerberos ticket: " + folder.error().text;
        return found;
    }
    found.plan = CredentialPlan{ticket->principal, *folder, WhenShort::hold,
                                settings->aklog.value_or(""), ""};
    found.ticket = *ticket;
    found.cache = *std::move(cache);
    return found;
}

bool refreshes_tickets(std::string_view verb)
{
    return std::find(std::begin(k_refreshing), std::end(k_refreshing), verb) !=
           std::end(k_refreshing);
}

void refresh_tickets(Doors& doors)
{
    // The login's ticket first: most have none, and then the state folder is left alone.
    const auto cache = doors.login_tickets().cache();
    const auto store = cache ? doors.store() : Result<Store*>(cache.error());
    const auto active = store ? active_runs(**store) : Result<std::vector<RunKey>>(store.error());
    if (active) {
        (void)deliver(**store, doors.secret_files(), *cache, *active, doors.clock().now());
        for (const RunKey& key : *active) {
            let_go_on(doors, **store, key);
        }
    }
}

} // namespace gpuq::cli
