// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/insight/overview.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// The part of a job that is cached, which reads back exactly as it was written.
OwnJob kept_job(const Job& job);

/// The content of cache/overview/CLUSTER.
std::string to_json(const Overview& overview);

/// Nothing for an invalid text or another version.
std::optional<Overview> overview_from_json(std::string_view text);

} // namespace gpuq
