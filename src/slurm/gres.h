// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "ports/nodes.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::slurm {

/// GPUs of one model, or another generic resource of one type, in a GRES string.
struct Gres {
    std::string model; ///< empty if the string names none
    int count = 0;
    bool operator==(const Gres&) const = default;
};

/// The GPUs in `gpu:k80:4(S:0-1),shard:8`, `gpu:a100:2(IDX:0,2)`, `gres/gpu:2`, `gpu`; other
/// generic resources are ignored, and counts of the same model are not added up. `name`: of another
/// resource to parse instead.
std::vector<Gres> parse_gres(std::string_view text, std::string_view name = "gpu");

/// A node's GPUs by model. `used` is its GRES in use; nullopt: not reported.
std::vector<NodeGpus> gpus_of_node(std::string_view gres, std::optional<std::string_view> used);

/// The shares of a node's GPUs. Slurm 22.05 lists in `used` the GPUs to which the held shares
/// belong
/// (`shard:k80:1(IDX:0)`), but not how many are held; other releases list both
/// (`shard:k80:3(3/4,0/4)`). `held`: the resources that jobs hold, as in `cpu=4,gres/shard=3`.
std::vector<NodeShares> shares_of_node(std::string_view gres, std::optional<std::string_view> used,
                                       std::optional<std::string_view> held);

/// The shares in the resources that a job holds on a node: `shard:k80:2(IDX:0)`, or from 24.11 on
/// `shard:k80:2(2/4,0/4)`.
std::vector<HeldShares> shares_of_job(std::string_view detail, const std::string& node);

} // namespace gpuq::slurm
