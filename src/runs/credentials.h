// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/key.h"
#include "core/result.h"
#include "credentials/keeping.h"
#include "credentials/token.h"
#include "ports/credentials.h"
#include "ports/store.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The Kerberos tickets of runs: records on disk, which are not secret, and the location of the
/// tickets, which are (ports/credentials.h). man gpuq-keepalive describes how tickets reach a run.
namespace gpuq {

/// How a chain continues when its ticket does not last.
enum class WhenShort {
    hold, ///< the next link waits for a new login
    run,  ///< the next link runs without a ticket
    fail, ///< the run ends
};
std::string_view word(WhenShort what);
std::optional<WhenShort> when_short_from_word(std::string_view text);

/// runs/KEY/credentials.json, written before the run is submitted; a run without this file has no
/// tickets.
struct CredentialPlan {
    std::string principal; ///< the tickets' principal; empty: no tickets
    std::string directory; ///< the run's store: absolute, visible to the nodes
    WhenShort when_short = WhenShort::hold;
    std::string aklog;  ///< executed after each renewal; empty: only if there is AFS
    std::string keytab; ///< for new tickets if renewal does not suffice; empty: none
    bool token = false; ///< the run has a bearer token, with or without a ticket
    bool operator==(const CredentialPlan&) const = default;
};
constexpr const char* k_credential_plan = "credentials.json";
std::string credential_plan_json(const RunKey& key);
std::string to_json(const CredentialPlan& plan);
Result<CredentialPlan> credential_plan_from_json(std::string_view text);

/// True if the path of the store contains the key of the run. Checked before a directory is
/// emptied, so that an incorrect file can't name another directory.
bool is_of(const CredentialPlan& plan, const RunKey& key);

/// The run's store, unless another one is configured: runs/KEY/credentials.
std::string usual_credential_directory(const std::string& state_dir, const RunKey& key);

/// File names in the store; each file has one writer.
constexpr const char* k_delivered = "delivered"; ///< by gpuq, from a login
constexpr const char* k_renewed = "renewed";     ///< by the supervisor, for the next link
constexpr const char* k_token = "token";         ///< the bearer token, by gpuq
constexpr const char* k_shared = "cache";        ///< the cache itself, for a job of several nodes

/// runs/KEY/link-N/credentials.json, written by the process that renews the ticket.
struct CredentialState {
    Time at;
    std::optional<credentials::Ticket> ticket; ///< unset: none
    std::optional<Time> next;                  ///< next renewal; unset: a login is needed
    credentials::Trouble trouble = credentials::Trouble::none;
    std::string message; ///< message of the last failure
    int renewals = 0;
    bool has_afs = false;                    ///< AFS tokens are obtained as well
    std::optional<credentials::Token> token; ///< the bearer token; unset: none
    std::optional<Time> token_got;           ///< when this token was obtained
    bool operator==(const CredentialState&) const = default;
};
std::string credential_state_json(const RunKey& key, LinkNumber link);
std::string to_json(const CredentialState& state);
Result<CredentialState> credential_state_from_json(std::string_view text);

/// A ticket cache, whose bytes are secret, and the properties of its ticket.
struct StoredTicket {
    std::string cache;
    credentials::Ticket ticket;
};

/// The best ticket in a run's store. `missing` if there is none.
Result<StoredTicket> stored_ticket(SecretFiles& files, const std::string& directory, Time now);

/// Used in place of Slurm's reason: the link is held.
constexpr const char* k_no_ticket = "Ticket";

/// runs/KEY/held.json: this link must not start before a new login.
struct Held {
    LinkNumber link;
    Time at;
    bool operator==(const Held&) const = default;
};
std::string held_json(const RunKey& key);
std::string to_json(const Held& held);
Result<Held> held_from_json(std::string_view text);

/// How a link of this length that is about to start must handle its ticket; nothing: it may start.
/// If a keytab provides new tickets, any ticket that has not expired suffices.
std::optional<WhenShort> short_of_ticket(Store& store, SecretFiles& files, const RunKey& key,
                                         std::chrono::seconds length, Time now);

/// True if a supervisor of one of the run's links has recorded that it renews the run's ticket.
bool is_kept_alive(Store& store, const RunKey& key);

/// Stores the ticket of a login for each of these runs that uses the same principal, if it is
/// better than the run's own. Returns the runs that got it; a run whose store can't be written is
/// skipped.
std::vector<RunKey> deliver(Store& store, SecretFiles& files, const std::string& login_cache,
                            const std::vector<RunKey>& active, Time now);

/// The same with a bearer token, for runs that have one: if it lasts longer than theirs, or if
/// neither has a known expiry.
std::vector<RunKey> deliver_token(Store& store, SecretFiles& files, const std::string& token,
                                  const std::vector<RunKey>& active);

/// When the first of these runs needs another token (credentials/token.h); nothing if none of them
/// has one.
std::optional<Time> token_due(Store& store, SecretFiles& files, const std::vector<RunKey>& active,
                              Time now);

/// The error of the last attempt to get a new token for the user's runs; no file: no error. Written
/// by gpuq on the login host.
constexpr const char* k_token_trouble = "cache/token-trouble";

/// Removes the store of a run that has ended. May be called if there is none.
void forget_credentials(Store& store, SecretFiles& files, const RunKey& key);

/// All records of a run's credentials.
struct CredentialRecords {
    CredentialPlan plan;
    std::optional<CredentialState> state;       ///< the link's
    std::optional<credentials::Ticket> waiting; ///< in the store
    std::optional<credentials::Token> token; ///< the better bearer token: the link's or the stored
                                             ///< one
    std::string token_trouble;               ///< why it gets no new one; empty: no error
    /// The better of the link's and the stored ticket.
    std::optional<credentials::Ticket> ticket(Time now) const;
    /// True if eventually only a login by the owner provides another ticket: there is no keytab, or
    /// it no longer works.
    bool needs_login() const;
};
/// Nothing for a run without credentials.
std::optional<CredentialRecords> credential_records(Store& store, SecretFiles& files,
                                                    const RunKey& key, LinkNumber link, Time now);

} // namespace gpuq
