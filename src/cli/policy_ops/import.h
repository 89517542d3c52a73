// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "govern/scene.h"
#include "report/json.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// A policy that describes a Slurm, and the rest in comments.
struct Imported {
    std::string cluster;
    std::string release;
    std::vector<SlurmObject> objects; ///< listed in `site`, sorted by kind and name
    std::vector<std::string> others;  ///< not listed, each a text with name and value
    std::vector<std::string> queues;  ///< lines: partitions with GPUs in the language of queues
};

/// `gpuq policy import`: prints the policy, or writes it to a new file. Changes nothing.
Result<int> policy_import(Invocation& invocation);

/// Pure. Plain shares, QOS without holders and settings that users do not notice are left out;
/// names and values that are not UTF-8 are moved to `others`.
Imported imported_from(const govern::Scene& scene);

/// The file: YAML that policy::read_policy() accepts, with the rest as comments. Pure.
std::string policy_text(const Imported& imported);
report::Json::Members import_document(const Imported& imported);

} // namespace gpuq::cli
