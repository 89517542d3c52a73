// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>

namespace gpuq::cli {

/// The two keys that detach, after Enter.
struct DetachKey {
    char first = '~';
    char second = 'd';
    bool off = false; ///< no keys are for gpuq
    bool operator==(const DetachKey&) const = default;
};

/// `~d`, any two printable ASCII characters, or `off`. `usage` says so.
Result<DetachKey> detach_key_from(std::string_view text);
/// `Enter ~ d`, for people; empty when off.
std::string keys_text(const DetachKey& key);

/// Finds gpuq's own keys among what a person types: after Enter `~ d` detaches, `~ ?` helps, `~ ~`
/// is one `~`. What comes in larger pieces is pasted, and nothing but the program's.
class EscapeKeys {
public:
    explicit EscapeKeys(DetachKey key)
        : m_key(key)
    {
    }

    struct Found {
        std::string bytes; ///< for the program
        bool detach = false;
        bool help = false;
    };
    Found take(std::string_view typed);

private:
    enum class State { line, line_start, first_seen } m_state = State::line_start;
    DetachKey m_key;
};

} // namespace gpuq::cli
