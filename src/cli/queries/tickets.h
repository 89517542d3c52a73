// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/run.h"
#include "runs/credentials.h"

#include <optional>
#include <string>

namespace gpuq::cli {

/// The credentials that a run takes along; all empty if the login has none.
struct LoginTicket {
    std::optional<CredentialPlan> plan;
    std::optional<credentials::Ticket> ticket;
    std::string cache;         ///< secret
    std::string token;         ///< bearer token, secret; empty: none
    std::string problem;       ///< for users: there is one, but the run can't have it
    std::string token_problem; ///< the same for the bearer token
};
/// `known`: the bearer token, if already found: the first call removes it from the environment.
LoginTicket login_ticket(Services& services, const RunKey& key, const std::string& known = {});

/// Makes the run's tickets come from a keytab when renewals end, and the first one too if the login
/// has none. Stores only its path, resolved against the run's working directory. `denied`,
/// `missing` or `usage` if the keytab can't be used: it does not belong to the user alone, or has
/// no keys for the ticket's principal.
Result<void> add_keytab(Services& services, const Run& run, const std::string& path,
                        LoginTicket& ticket);

/// Overwrites the secrets in it.
void forget(LoginTicket& ticket);

/// Writes the credentials to the run's store, whose directory it creates.
Result<void> store_ticket(SecretFiles& files, const LoginTicket& ticket);

/// Starts a gpuq in the background that refreshes the credentials of this user's runs on this
/// machine while there are active ones (`gpuq keepalive --stay`).
void leave_keeper(Services& services);
/// The work of that process. Returns when there is nothing more to refresh. If another process is
/// doing it, refreshes once: this process may know another token command.
void keep_refreshing(Services& services);
/// The name of the lock that it holds: it only knows the runs in its own state directory.
std::string refreshes_as(Store& store);

/// Gives active runs the login's ticket if it is better than theirs, releases links that were held
/// for one, and renews the tickets of waiting runs. Every verb that queries runs does this first.
/// Prints nothing, never fails, and waits for the token command only with `here`.
enum class TokenCommand {
    elsewhere, ///< executed by a background process: it may hang
    here,      ///< executed and waited for
    nowhere,   ///< not executed
};
void refresh_tickets(Services& services, TokenCommand where = TokenCommand::elsewhere);
/// Whether the verb of this name does this.
bool refreshes_tickets(std::string_view verb);

} // namespace gpuq::cli
