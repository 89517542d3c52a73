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

/// A run's tickets as people and scripts are shown them. Pure; not sanitised.
namespace gpuq::cli {

struct RunCredentials {
    RunStatus status;
    CredentialRecords records;
};

/// How long a run needs its ticket from now on; nothing: that is not known, or it has ended.
std::optional<credentials::Need> need_of(const RunStatus& status, Time now);
/// The same for a run that begins at `now`.
credentials::Need need_of(const Request& request, Time now);
/// One line for people where the ticket does not last; else empty.
std::string forecast_text(const credentials::Ticket& ticket, const credentials::Need& need,
                          Time now);

/// `run 12 (train): the ticket is renewable until ...` of each run whose ticket does not last.
std::vector<std::string> shortages(const std::vector<RunCredentials>& runs, Time now);

/// What happens next to a ticket: `renews at 16:40`, `log in before 17:00`, ...
std::string next_text(const CredentialRecords& records, const RunStatus& status, Time now);
/// Why not, in a few words; empty: nothing is wrong.
std::string trouble_text(const CredentialRecords& records);

/// Name and text of the fields that `gpuq show` has of it.
std::vector<std::pair<std::string, std::string>>
credential_fields(const CredentialRecords& records, const RunStatus& status, Time now);

/// Columns id, name, principal, ends, until, next, trouble; on request also key, renewals, state.
/// When its bearer token ends, or that it has none.
std::string token_text(const CredentialRecords& records, const RunStatus& status, Time now);
report::Table credentials_table(const std::vector<RunCredentials>& runs, Time now);

/// Of one run, in every document that tells of it; null where it has none.
report::Json credentials_json(const std::optional<CredentialRecords>& records,
                              const RunStatus& status, Time now);
report::Json::Members keepalive_document(const std::vector<RunCredentials>& runs, Time now);

} // namespace gpuq::cli
