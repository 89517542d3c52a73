// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "credentials/forecast.h"
#include "report/json.h"
#include "report/table.h"
#include "runs/credentials.h"
#include "runs/status.h"

#include <optional>
#include <string>
#include <vector>

/// Text and JSON of a run's tickets. Pure; not sanitised.
namespace gpuq::cli {

struct RunCredentials {
    RunStatus status;
    CredentialRecords records;
};

/// How long a run needs its ticket from now on; nothing if that is unknown or the run has ended.
std::optional<credentials::Need> need_of(const RunStatus& status, Time now);
/// The same for a run that starts at `now`.
credentials::Need need_of(const Request& request, Time now);
/// A warning line if the ticket expires too early, else empty.
std::string forecast_text(const credentials::Ticket& ticket, const credentials::Need& need,
                          Time now);

/// `run 12 (train): the ticket is renewable until ...` for each run whose ticket expires too early.
std::vector<std::string> shortages(const std::vector<RunCredentials>& runs, Time now);

/// The next event of a ticket: `renews at 16:40`, `log in before 17:00`, ...
std::string next_text(const CredentialRecords& records, const RunStatus& status, Time now);
/// The current problem in a few words; empty: none.
std::string trouble_text(const CredentialRecords& records);

/// Name and text of the credential fields of `gpuq show`.
std::vector<std::pair<std::string, std::string>>
credential_fields(const CredentialRecords& records, const RunStatus& status, Time now);

/// When the bearer token expires, or that the run has none.
std::string token_text(const CredentialRecords& records, const RunStatus& status, Time now);
/// Columns id, name, principal, ends, until, next, token, trouble; on request also key, renewals,
/// state.
report::Table credentials_table(const std::vector<RunCredentials>& runs, Time now);

/// The member of every JSON document about a run; null if the run has no credentials.
report::Json credentials_json(const std::optional<CredentialRecords>& records,
                              const RunStatus& status, Time now);
report::Json::Members keepalive_document(const std::vector<RunCredentials>& runs, Time now);

} // namespace gpuq::cli
