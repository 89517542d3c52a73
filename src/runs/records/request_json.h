// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"

#include <nlohmann/json.hpp>

#include <optional>

/// The request of a run, as part of the documents of record.h.
namespace gpuq::records {

nlohmann::json json_of(const Request& request);
/// `usage`, which describes the error.
Result<Request> request_from(const nlohmann::json& object);

nlohmann::json json_of(const std::optional<Chain>& chain);
Result<std::optional<Chain>> chain_from(const nlohmann::json& object);

} // namespace gpuq::records
