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

/// Kerberos tickets of runs: what the disk says of them, which is not secret, and where the tickets
/// themselves lie, which are (ports/credentials.h). man gpuq-keepalive tells how they travel.
namespace gpuq {

/// What becomes of a chain when its ticket does not last.
enum class WhenShort {
    hold, ///< the next link waits for a new login
    run,  ///< it runs without
    fail, ///< the run ends
};
std::string_view word(WhenShort what);
std::optional<WhenShort> when_short_from_word(std::string_view text);

/// runs/KEY/credentials.json, written before the run is submitted; no file: a run without tickets.
struct CredentialPlan {
    std::string principal; ///< of the tickets; empty: it has none
    std::string folder;    ///< of the run's store: absolute, and the nodes see it
    WhenShort when_short = WhenShort::hold;
    std::string aklog;  ///< executed after each renewal; empty: only where there is AFS
    std::string keytab; ///< of new tickets, when a renewal is not enough; empty: none
    bool token = false; ///< it has a bearer token too, or that alone
    bool operator==(const CredentialPlan&) const = default;
};
constexpr const char* k_credential_plan = "credentials.json";
std::string credential_plan_json(const RunKey& key);
std::string to_json(const CredentialPlan& plan);
Result<CredentialPlan> credential_plan_from_json(std::string_view text);

/// Whatever the file says: no folder but a run's own is ever emptied.
bool is_of(const CredentialPlan& plan, const RunKey& key);

/// Where a run's store is when nothing else is configured: runs/KEY/credentials.
std::string usual_credential_folder(const std::string& state_dir, const RunKey& key);

/// Names in it; each has one writer.
constexpr const char* k_delivered = "delivered"; ///< by gpuq, out of a login
constexpr const char* k_renewed = "renewed";     ///< by the supervisor, for the next link
constexpr const char* k_token = "token";         ///< the bearer token, by gpuq
constexpr const char* k_shared = "cache";        ///< the cache itself, of a job of several nodes

/// runs/KEY/link-N/credentials.json, by the process that keeps the ticket alive.
struct CredentialState {
    Time at;
    std::optional<credentials::Ticket> ticket; ///< nothing: there is none
    std::optional<Time> next;                  ///< of a renewal; nothing: only a login helps
    credentials::Trouble trouble = credentials::Trouble::none;
    std::string words; ///< of the last failure
    int renewals = 0;
    bool has_afs = false;                    ///< AFS tokens are made as well
    std::optional<credentials::Token> token; ///< the bearer token; nothing: there is none
    std::optional<Time> token_got;           ///< since when it is that one
    bool operator==(const CredentialState&) const = default;
};
std::string credential_state_json(const RunKey& key, LinkNumber link);
std::string to_json(const CredentialState& state);
Result<CredentialState> credential_state_from_json(std::string_view text);

/// Bytes, which are secret, and what they are worth.
struct StoredTicket {
    std::string cache;
    credentials::Ticket ticket;
};

/// The best ticket in a run's store. `missing` when there is none.
Result<StoredTicket> stored_ticket(SecretFiles& files, const std::string& folder, Time now);

/// In the place of Slurm's reason: the link is held.
constexpr const char* k_no_ticket = "Ticket";

/// runs/KEY/held.json: this link is not to begin before there is a new login.
struct Held {
    LinkNumber link;
    Time at;
    bool operator==(const Held&) const = default;
};
std::string held_json(const RunKey& key);
std::string to_json(const Held& held);
Result<Held> held_from_json(std::string_view text);

/// What a link of this length, which is to begin, is to do about its ticket. Nothing: to begin. A
/// ticket that has not ended is enough where a keytab gives the next.
std::optional<WhenShort> short_of_ticket(Store& store, SecretFiles& files, const RunKey& key,
                                         std::chrono::seconds length, Time now);

/// That a link of the run is there whose supervisor renews its ticket.
bool is_kept_alive(Store& store, const RunKey& key);

/// Gives every one of these runs that has credentials the login's ticket where that is better than
/// what the run has. Gives the runs that got it; one that can't be given it is left out.
std::vector<RunKey> deliver(Store& store, SecretFiles& files, const std::string& login_cache,
                            const std::vector<RunKey>& active, Time now);

/// The same with a bearer token, for the runs that have one: where it lasts longer than theirs, or
/// none of the two says how long it does.
std::vector<RunKey> deliver_token(Store& store, SecretFiles& files, const std::string& token,
                                  const std::vector<RunKey>& active);

/// When the first of these runs is to be given another token (credentials/token.h); nothing: none
/// of them has one.
std::optional<Time> token_due(Store& store, SecretFiles& files, const std::vector<RunKey>& active,
                              Time now);

/// Why no run of this user can be given another token, of the last time it was tried; no file:
/// nothing is wrong. By gpuq on the login host.
constexpr const char* k_token_trouble = "cache/token-trouble";

/// The run has ended: nothing of its store stays. To be called where there may be none.
void forget_credentials(Store& store, SecretFiles& files, const RunKey& key);

/// What is known of a run's credentials.
struct CredentialRecords {
    CredentialPlan plan;
    std::optional<CredentialState> state;       ///< of the link
    std::optional<credentials::Ticket> waiting; ///< in the store
    std::optional<credentials::Token> token;    ///< the bearer token: the better of both
    std::string token_trouble;                  ///< why it gets no other; empty: nothing is wrong
    /// The best of both.
    std::optional<credentials::Ticket> ticket(Time now) const;
    /// Nobody but its owner gets it another ticket in the end: it has no keytab, or one that gives
    /// none.
    bool needs_login() const;
};
/// Nothing: a run without.
std::optional<CredentialRecords> credential_records(Store& store, SecretFiles& files,
                                                    const RunKey& key, LinkNumber link, Time now);

} // namespace gpuq
