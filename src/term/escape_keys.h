// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "term/keys.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace gpuq::cli {

/// The two keys that detach when typed after Enter.
struct DetachKey {
    char first = '~';
    char second = 'd';
    bool off = false; ///< gpuq intercepts no keys
    bool operator==(const DetachKey&) const = default;
};

/// Parses `~d`, any two printable ASCII characters, or `off`; otherwise `usage`.
Result<DetachKey> detach_key_from(std::string_view text);
/// `Enter ~ d`, for messages; empty when off.
std::string keys_text(const DetachKey& key);

/// Finds gpuq's own keys among those typed, in every encoding that a program can request from a
/// terminal (term/keys.h): after Enter, `~ d` detaches, `~ ?` prints help, `~ ~` sends one `~`.
/// Bracketed paste, and more key presses at once than a user types, belong to the program alone.
/// All other bytes pass unchanged and in order.
class EscapeKeys {
public:
    explicit EscapeKeys(DetachKey key)
        : m_key(key)
    {
    }

    /// How the terminal encodes keys: as `plain` bytes, or as sequences, which may arrive in
    /// pieces.
    enum class Encoding { plain, sequences };
    struct Found {
        std::string bytes; ///< for the program
        bool detach = false;
        bool help = false;
    };
    Found take(std::string_view typed, Encoding encoding = Encoding::plain);
    /// The beginning of a key is held back; call released() if the rest does not arrive soon.
    bool is_waiting() const { return m_reader.pending().size() > m_passed; }
    std::string released();

private:
    void on_key(const KeyEvent& event, std::string_view raw, bool last, Found& found);

    enum class State { line, line_start, first_seen } m_state = State::line_start;
    DetachKey m_key;
    KeyReader m_reader;
    std::size_t m_passed = 0; ///< number of the reader's pending bytes passed to the program
    std::string m_held;       ///< the first key, and terminal reports after it
};

} // namespace gpuq::cli
