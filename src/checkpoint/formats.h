// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/bytes.h"

#include <cstdint>
#include <string>
#include <string_view>

/// What a file says about its own completeness: its first bytes say of which kind it is, its name
/// only where they do not. Nothing here touches the outside but through Bytes; heads, tails and
/// tables of contents are read, never the data between them. Whatever the bytes are, time and
/// memory stay below what the file's size and a fixed limit allow.
namespace gpuq::checkpoint {

struct Judgement {
    enum class Says : std::uint8_t {
        whole,      ///< its end is there, and fits its beginning
        incomplete, ///< something that must be in it is not; `why` says what
        settles,    ///< of a known kind that can't tell, and nothing speaks against it
        unknown,    ///< of no known kind
    };
    Says says = Says::unknown;
    std::string why; ///< of an incomplete one: one sentence without a full stop

    bool operator==(const Judgement&) const = default;
};

/// Judges a file named `name` (its last component). When bytes.error() is set afterwards the
/// judgement means nothing.
Judgement judge(Bytes& bytes, std::string_view name);

/// Whether a file of this name holds weights or states, as far as a name can tell.
bool is_data_name(std::string_view name);

// One function for each kind; `bytes` begins as that kind does.
Judgement judge_zip(Bytes& bytes);
Judgement judge_hdf5(Bytes& bytes, std::uint64_t signature);
Judgement judge_npy(Bytes& bytes);
Judgement judge_pickle(Bytes& bytes);
/// `whole` or `incomplete`; `unknown` when it does not even begin as one.
Judgement judge_safetensors(Bytes& bytes);

inline Judgement incomplete(std::string why)
{
    return {Judgement::Says::incomplete, std::move(why)};
}

} // namespace gpuq::checkpoint
