// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::slurm {

/// GPUs of one model in a GRES string.
struct Gres {
    std::string model; ///< empty if the string names none
    int count = 0;
    bool operator==(const Gres&) const = default;
};

/// The GPUs in `gpu:k80:4(S:0-1),shard:8`, `gpu:a100:2(IDX:0,2)`, `gres/gpu:2`, `gpu`; other
/// generic resources are ignored, and counts of the same model are not added up.
std::vector<Gres> parse_gres(std::string_view text);

} // namespace gpuq::slurm
