// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "runs/insight/shared_overview.h"

#include <functional>
#include <optional>
#include <string>

/// The file in which a service of the site shares an overview with all users of this host.
namespace gpuq::cli {

/// The content of `path` for the calling user. Nothing if the file does not exist, is invalid, or
/// could have been written by anyone but root and this user (Services::text_file).
std::optional<SharedOverview> read_shared_overview(Services& services, const std::string& path,
                                                   const std::string& cluster);

/// Wish::shared, from the directory `overview_dir` of the settings. `services` must outlive it.
std::function<std::optional<Overview>()> shared_overview(Services& services,
                                                         const std::string& cluster);

} // namespace gpuq::cli
