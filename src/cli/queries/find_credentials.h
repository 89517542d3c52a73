// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/render/credentials_text.h"

namespace gpuq::cli {

/// The runs that have a ticket or a token, with its records from disk.
std::vector<RunCredentials> find_credentials(Services& services, Store& store,
                                             const std::vector<RunStatus>& runs);

} // namespace gpuq::cli
