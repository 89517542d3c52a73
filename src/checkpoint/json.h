// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Extracts single values from other programs' JSON. Only the requested values are kept in memory,
/// however deep or long the text is. Each function returns nothing for invalid JSON.
namespace gpuq::checkpoint {

/// The end of the data according to a safetensors header: the largest of its data_offsets; 0
/// without tensors. Nothing if a tensor has no offsets or invalid ones.
std::optional<std::uint64_t> data_end(std::string_view safetensors_header);

/// trainer_state.json of Hugging Face's Trainer, which may hold NaN and Infinity as written by
/// Python.
struct TrainerState {
    std::optional<std::uint64_t> global_step;
};
std::optional<TrainerState> parse_trainer_state(std::string_view text);

/// The files listed in `weight_map` of a `*.index.json`, sorted, each once.
std::optional<std::vector<std::string>> files_of_index(std::string_view text);

} // namespace gpuq::checkpoint
