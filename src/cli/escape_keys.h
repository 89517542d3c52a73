// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/keys.h"
#include "core/result.h"

#include <cstddef>
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

/// Finds gpuq's own keys among those typed, in every encoding that a program can ask a terminal for
/// (core/keys.h): after Enter `~ d` detaches, `~ ?` helps, `~ ~` is one `~`. More keys at once than
/// a user types are pasted, and so is what stands in brackets: nothing but the program's. Every
/// other byte passes unchanged and in its order.
class EscapeKeys {
public:
    explicit EscapeKeys(DetachKey key)
        : m_key(key)
    {
    }

    /// How the terminal sends keys: as `plain` bytes, or in sequences, which may come in pieces.
    enum class Encoding { plain, sequences };
    struct Found {
        std::string bytes; ///< for the program
        bool detach = false;
        bool help = false;
    };
    Found take(std::string_view typed, Encoding encoding = Encoding::plain);
    /// A key may have begun whose rest has not come: to be released() when it does not come soon.
    bool is_waiting() const { return m_reader.pending().size() > m_passed; }
    std::string released();

private:
    void on_key(const KeyEvent& event, std::string_view raw, bool last, Found& found);

    enum class State { line, line_start, first_seen } m_state = State::line_start;
    DetachKey m_key;
    KeyReader m_reader;
    std::size_t m_passed = 0; ///< of the reader's pending bytes, to the program
    std::string m_held;       ///< the first key, and reports behind it
};

} // namespace gpuq::cli
