// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "core/run.h"
#include "runs/credentials.h"

#include <optional>
#include <string>

namespace gpuq::cli {

/// The ticket that a run takes along: nothing of it where the login has none.
struct LoginTicket {
    std::optional<CredentialPlan> plan;
    std::optional<credentials::Ticket> ticket;
    std::string cache;         ///< secret
    std::string token;         ///< bearer token, secret; empty: none
    std::string problem;       ///< for people: there is one, and the run can't have it
    std::string token_problem; ///< the same of the bearer token
};
/// `known`: the bearer token, where it was found before; it is in the environment once.
LoginTicket login_ticket(Doors& doors, const RunKey& key, const std::string& known = {});

/// Has the run's tickets come from a keytab when renewals end, and the first one where the login
/// has none. The path alone goes along, from the run's working directory. `denied`, `missing`,
/// `usage` say why the keytab is not to be used: it is not the person's alone, or is not its
/// owner's.
Result<void> add_keytab(Doors& doors, const Run& run, const std::string& path, LoginTicket& ticket);

/// Overwrites what is secret in it.
void forget(LoginTicket& ticket);

/// Puts them into the run's store, whose folder it makes.
Result<void> store_ticket(SecretFiles& files, const LoginTicket& ticket);

/// A gpuq of this user that refreshes the credentials of runs on this machine while there are
/// active ones: by its own process, until then (`gpuq keepalive --stay`).
void leave_keeper(Doors& doors);
/// Its work. Comes back when there is nothing more to refresh. Where another one does it, it
/// refreshes once: this process may know another token command.
void keep_refreshing(Doors& doors);
/// The name that it holds meanwhile: it knows the runs of its own state folder only.
std::string refreshes_as(Store& store);

/// Gives active runs the login's ticket where it is better than theirs, lets links go on that were
/// held for one, and renews those of runs that wait: every verb that looks at runs does that first.
/// Says nothing and fails nothing, and waits for no token command but where told so.
enum class TokenCommand {
    elsewhere, ///< executed by a process that is left running: it may hang
    here,      ///< and waited for
    nowhere,   ///< not now
};
void refresh_tickets(Doors& doors, TokenCommand where = TokenCommand::elsewhere);
/// Whether a verb of this name does.
bool refreshes_tickets(std::string_view verb);

} // namespace gpuq::cli
