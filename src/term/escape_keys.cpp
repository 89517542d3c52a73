// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/escape_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gpuq::cli {
namespace {

/// More key presses than this in one read are a paste.
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
                    fmt::format("'{}' is neither off nor two characters to type after "
                                "Enter, such as ~d",
                                text));
    }
    return DetachKey{text[0], text[1]};
}

std::string keys_text(const DetachKey& key)
{
    return key.off ? "" : fmt::format("Enter {} {}", key.first, key.second);
}

EscapeKeys::Found EscapeKeys::take(std::string_view typed, Encoding encoding)
{
    std::vector<KeyEvent> events;
    while (auto event = m_reader.take(typed)) {
        events.push_back(*std::move(event));
    }
    const auto is_press = [](const KeyEvent& event) { return event.kind == KeyEvent::Kind::press; };
    auto presses = static_cast<std::size_t>(std::count_if(events.begin(), events.end(), is_press));
    const bool pasted = m_key.off || presses > k_most_typed;
    Found found;
    for (KeyEvent& event : events) {
        const std::size_t passed = std::exchange(m_passed, 0);
        if (pasted || passed > 0) { // once the program has received part of a sequence, the rest is
                                    // also for the program
            event.kind = is_press(event) ? KeyEvent::Kind::pasted : event.kind;
        }
        presses -= is_press(event) ? 1 : 0;
        on_key(event, std::string_view(event.raw).substr(passed), presses == 0, found);
        if (found.detach) {
            return found;
        }
    }
    if (encoding == Encoding::plain || m_state == State::line || m_key.off) {
        found.bytes += released();
    }
    return found;
}

std::string EscapeKeys::released()
{
    if (!is_waiting()) {
        return {};
    }
    m_state = m_state == State::first_seen ? State::line : m_state;
    std::string bytes = std::exchange(m_held, {});
    bytes += m_reader.pending().substr(m_passed);
    m_passed = m_reader.pending().size();
    return bytes;
}

void EscapeKeys::on_key(const KeyEvent& event, std::string_view raw, bool last, Found& found)
{
    if (event.kind == KeyEvent::Kind::report) {
        (m_state == State::first_seen ? m_held : found.bytes) += raw;
        return;
    }
    const bool enters = event.character == U'\r' || raw.ends_with('\r') || raw.ends_with('\n');
    const State next = enters ? State::line_start : State::line;
    if (m_state == State::first_seen) {
        m_state = next;
        // A user types nothing after a detach: if more follows, it was pasted.
        if (event.is(m_key.second) && last) {
            m_held.clear();
            found.detach = true;
            return;
        }
        if (event.is('?')) {
            m_held.clear();
            m_state = State::line_start;
            found.help = true;
            return;
        }
        found.bytes += std::exchange(m_held, {});
        if (event.is(m_key.first)) {
            return;
        }
    } else if (m_state == State::line_start && event.is(m_key.first)) {
        m_state = State::first_seen;
        m_held = raw;
        return;
    }
    found.bytes += raw;
    m_state = next;
}

} // namespace gpuq::cli
