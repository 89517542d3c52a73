// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "runs/query_status.h"

namespace gpuq::cli {

/// A verb's interfaces, as a status query (runs/query_status.h) needs them. `services` must outlive
/// the result.
inline StatusSources status_sources(Services& services, Store& store)
{
    return {store, services.clock(), [&services] { return services.cluster(); },
            [&services] { return services.accounting(); }};
}

} // namespace gpuq::cli
