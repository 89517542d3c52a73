// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/bytes.h"

#include <cstdint>
#include <string>
#include <string_view>

/// Judges from a file's content whether it is complete. Its first bytes identify the format; its
/// name is used only if they do not. All access goes through Bytes. Only headers, trailers and
/// tables of contents are read, never the data between them. For any content, time and memory are
/// limited by the file's size and a fixed maximum.
namespace gpuq::checkpoint {

struct Judgement {
    enum class Says : std::uint8_t {
        whole,      ///< its end exists and fits its beginning
        incomplete, ///< a necessary part is missing; `why` names it
        settles,    ///< the format has no reliable end mark, and no error was found
        unknown,    ///< unknown format
    };
    Says says = Says::unknown;
    std::string why; ///< for an incomplete file: one sentence without a full stop

    bool operator==(const Judgement&) const = default;
};

/// Judges a file named `name` (its last component). If bytes.error() is set afterwards, the
/// judgement is invalid.
Judgement check_completeness(Bytes& bytes, std::string_view name);

/// True if the name is typical of a file with weights or states.
bool is_data_name(std::string_view name);

// One function per format; `bytes` begins like a file of that format.
Judgement check_zip(Bytes& bytes);
Judgement check_hdf5(Bytes& bytes, std::uint64_t signature);
Judgement check_npy(Bytes& bytes);
Judgement check_pickle(Bytes& bytes);
/// `whole` or `incomplete`; `unknown` if it does not begin like a safetensors file.
Judgement check_safetensors(Bytes& bytes);

inline Judgement incomplete(std::string why)
{
    return {Judgement::Says::incomplete, std::move(why)};
}

} // namespace gpuq::checkpoint
