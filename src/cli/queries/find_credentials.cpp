// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/find_credentials.h"

#include "ports/clock.h"

namespace gpuq::cli {

std::vector<RunCredentials> find_credentials(Services& services, Store& store,
                                             const std::vector<RunStatus>& runs)
{
    const Time now = services.clock().now();
    std::vector<RunCredentials> found;
    for (const RunStatus& status : runs) {
        if (auto records =
                credential_records(store, services.secret_files(), status.key, status.link, now)) {
            found.push_back({status, *std::move(records)});
        }
    }
    return found;
}

} // namespace gpuq::cli
