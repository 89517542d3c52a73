// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/escape_keys.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

/// No person types more within one turn of the loop, also over a slow line.
constexpr std::size_t k_most_typed = 32;

bool is_key(char c)
{
    return c > ' ' && c <= '~';
}

} // namespace

Result<DetachKey> detach_key_from(std::string_view text)
{
    if (text == "off") {
        return DetachKey{.off = true};
    }
    if (text.size() != 2 || !is_key(text[0]) || !is_key(text[1])) {
        return fail(Error::Kind::usage,
                    fmt::format("detach_key: '{}' is not two characters that follow Enter, such as "
                                "~d, and not off",
                                text));
    }
    return DetachKey{text[0], text[1]};
}

std::string keys_text(const DetachKey& key)
{
    return key.off ? "" : fmt::format("Enter {} {}", key.first, key.second);
}

EscapeKeys::Found EscapeKeys::take(std::string_view typed)
{
    Found found;
    if (m_key.off || typed.size() > k_most_typed) {
        if (m_state == State::first_seen) {
            found.bytes += m_key.first;
        }
        found.bytes += typed;
        const bool at_start = typed.ends_with('\r') || typed.ends_with('\n');
        m_state = at_start ? State::line_start : State::line;
        return found;
    }
    for (std::size_t i = 0; i < typed.size(); ++i) {
        const char c = typed[i];
        if (m_state == State::first_seen) {
            m_state = State::line;
            // Who wants to go types nothing after it: with more behind it, it was pasted.
            if (c == m_key.second && i + 1 == typed.size()) {
                found.detach = true;
                return found;
            }
            if (c == '?') {
                found.help = true;
                m_state = State::line_start;
                continue;
            }
            found.bytes += m_key.first;
            if (c == m_key.first) {
                continue;
            }
        } else if (m_state == State::line_start && c == m_key.first) {
            m_state = State::first_seen;
            continue;
        }
        found.bytes += c;
        m_state = c == '\r' || c == '\n' ? State::line_start : State::line;
    }
    return found;
}

} // namespace gpuq::cli
