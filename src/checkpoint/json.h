// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The few things that we read out of other programs' JSON. Nothing is kept of a text but what is
/// asked for, however deep or long it is; each function says nothing for a text that is no JSON.
namespace gpuq::checkpoint {

/// The end of the data that a safetensors header tells of: the largest of its data_offsets. 0
/// without tensors. Nothing also when a tensor has no offsets, or impossible ones.
std::optional<std::uint64_t> data_end(std::string_view safetensors_header);

/// trainer_state.json of Hugging Face's Trainer, which may hold NaN and Infinity as Python writes
/// them.
struct TrainerState {
    std::optional<std::uint64_t> global_step;
};
std::optional<TrainerState> parse_trainer_state(std::string_view text);

/// The files that `weight_map` of a `*.index.json` names, sorted, each once.
std::optional<std::vector<std::string>> files_of_index(std::string_view text);

} // namespace gpuq::checkpoint
