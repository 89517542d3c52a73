// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "ports/store.h"
#include "runs/credentials.h"
#include "runs/idle.h"
#include "runs/records/journal.h"
#include "runs/records/record.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace gpuq {

/// The records of one link. Those that are missing or can't be read are empty.
struct LinkRecords {
    LinkNumber link;
    std::optional<LinkJob> job;
    std::vector<Event> journal;
    std::optional<IdleFinding> idle;
    std::optional<CredentialState> credentials;
};

/// Reads the records of the newest `most` links up to `newest`, oldest first: four small files for
/// each.
std::vector<LinkRecords> link_records(Store& store, const RunKey& key, LinkNumber newest,
                                      std::size_t most = 50);

} // namespace gpuq
