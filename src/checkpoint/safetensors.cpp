// SPDX-License-Identifier: GPL-2.0-or-later
// The header's length in eight bytes, the header as JSON, and the tensors up to the end of the
// file.
#include "checkpoint/formats.h"

#include "checkpoint/json.h"

#include <fmt/format.h>

namespace gpuq::checkpoint {
namespace {

/// The format's own limit.
constexpr std::uint64_t k_longest_header = 100'000'000;

} // namespace

Judgement check_safetensors(Bytes& bytes)
{
    const auto start = bytes.at(0, 9);
    if (!start || start->back() != '{') {
        return {};
    }
    const std::uint64_t length = little_endian(*start, 0, 8);
    if (length > k_longest_header) {
        return {};
    }
    const auto header = bytes.at(8, length);
    if (!header) {
        return incomplete("its header is cut off");
    }
    const auto end = data_end(*header);
    if (!end) {
        return incomplete("its header is invalid");
    }
    const std::uint64_t there = bytes.size() - 8 - length;
    if (there != *end) {
        return incomplete(fmt::format("{} bytes of tensors are present, not {}", there, *end));
    }
    return {Judgement::Says::whole, ""};
}

} // namespace gpuq::checkpoint
