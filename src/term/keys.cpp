// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/keys.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpuq {
namespace {

using Kind = KeyEvent::Kind;

constexpr char k_escape = '\x1b';
constexpr char k_bell = '\x07';
constexpr char k_delete = '\x7f';
constexpr std::size_t k_longest_event = 4096;
constexpr std::string_view k_paste_begins = "\x1b[200~";
constexpr std::string_view k_paste_ends = "\x1b[201~";
constexpr std::size_t k_mouse_event = 6; ///< ESC [ M and three bytes

enum : unsigned { k_shift = 1, k_alt = 2, k_control = 4, k_others = 8 | 16 | 32, k_caps_lock = 64 };
constexpr unsigned k_released = 3;

bool is_control_byte(char c)
{
    return static_cast<unsigned char>(c) < ' ';
}

bool is_letter(char32_t c)
{
    return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
}

char32_t lower(char32_t c)
{
    return c >= U'A' && c <= U'Z' ? c + (U'a' - U'A') : c;
}

std::string utf8(char32_t c)
{
    if (c < 0x80) {
        return {static_cast<char>(c)};
    }
    std::string bytes;
    const int tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr std::array k_leads = {0, 0xc0, 0xe0, 0xf0};
    bytes += static_cast<char>(k_leads[static_cast<std::size_t>(tail)] | (c >> (6 * tail)));
    for (int i = tail - 1; i >= 0; --i) {
        bytes += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3f));
    }
    return bytes;
}

/// The character that Shift produces on a US keyboard; used when the terminal reports only the
/// unshifted key.
char32_t shifted(char32_t c)
{
    constexpr std::string_view k_plain = "`1234567890-=[]\\;',./";
    constexpr std::string_view k_shifted = "~!@#$%^&*()_+{}|:\"<>?";
    static_assert(k_plain.size() == k_shifted.size());
    if (c >= U'a' && c <= U'z') {
        return c - (U'a' - U'A');
    }
    const std::size_t at = c < 0x80 ? k_plain.find(static_cast<char>(c)) : std::string_view::npos;
    return at == std::string_view::npos ? c : static_cast<char32_t>(k_shifted[at]);
}

/// Splits `97:65;2;65` into parameters and their subparameters; a missing one is 0.
std::vector<std::vector<std::uint32_t>> parameters(std::string_view text)
{
    std::vector<std::vector<std::uint32_t>> all(1, std::vector<std::uint32_t>(1, 0));
    while (!text.empty()) {
        std::uint32_t number = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number);
        all.back().back() = error == std::errc() ? number : 0;
        text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
        if (text.empty()) {
            break;
        }
        if (text.front() == ';') {
            all.emplace_back(1, 0);
        } else if (text.front() == ':') {
            all.back().push_back(0);
        }
        text.remove_prefix(1);
    }
    return all;
}

std::uint32_t at(const std::vector<std::vector<std::uint32_t>>& all, std::size_t i,
                 std::size_t sub = 0)
{
    return i < all.size() && sub < all[i].size() ? all[i][sub] : 0;
}

KeyEvent press(char32_t character, unsigned modifiers)
{
    KeyEvent event;
    event.kind = Kind::press;
    event.character = character;
    event.control = (modifiers & k_control) != 0;
    event.other_modifier = (modifiers & (k_alt | k_others)) != 0;
    const bool types = character >= U' ' && character != static_cast<char32_t>(k_delete);
    if (types && !event.control && !event.other_modifier) {
        event.text = utf8(character);
    }
    return event;
}

/// Decodes one byte of a terminal that uses no extended protocol.
KeyEvent press_of_byte(char c)
{
    if (c == '\r' || c == '\n') {
        return press(U'\r', 0);
    }
    if (c == '\b' || c == k_delete) {
        return press(static_cast<char32_t>(k_delete), 0);
    }
    if (c == '\t' || c == k_escape) {
        return press(static_cast<char32_t>(c), 0);
    }
    if (is_control_byte(c)) {
        return press(lower(static_cast<char32_t>(c) + U'@'), k_control);
    }
    KeyEvent event = press(static_cast<unsigned char>(c), 0);
    event.text = c;
    return event;
}

/// Character of a keypad key in the kitty protocol; 0 if `code` is not one.
char32_t keypad_character(std::uint32_t code)
{
    constexpr std::uint32_t k_first = 57399;
    constexpr std::string_view k_characters = "0123456789./*-+\r=,";
    const std::uint32_t i = code - k_first;
    return code >= k_first && i < k_characters.size() ? static_cast<char32_t>(k_characters[i]) : 0;
}

bool is_private_use(std::uint32_t code)
{
    return code >= 57344 && code <= 63743;
}

bool is_modifier_key(std::uint32_t code)
{
    return (code >= 57441 && code <= 57454) || (code >= 57358 && code <= 57360);
}

/// CSI code:shifted:base ; modifiers:event ; text u
KeyEvent kitty(const std::vector<std::vector<std::uint32_t>>& all)
{
    const std::uint32_t code = at(all, 0);
    const unsigned modifiers = std::max(at(all, 1), 1U) - 1;
    if (at(all, 1, 1) == k_released || is_modifier_key(code)) {
        return {};
    }
    const bool modified = (modifiers & (k_control | k_alt | k_others)) != 0;
    const std::uint32_t text = at(all, 2);
    char32_t character = is_private_use(code) ? keypad_character(code) : code;
    if (!modified && text != 0) {
        character = text;
    } else if (modified && character >= 0x80 && at(all, 0, 2) != 0) {
        character = at(all, 0, 2); // non-Latin layout: use the key's base-layout character
    } else if ((modifiers & k_shift) != 0 && character >= U' ') {
        character = at(all, 0, 1) != 0 ? at(all, 0, 1) : shifted(character);
    }
    if (text == 0 && (modifiers & k_caps_lock) != 0 && is_letter(character)) {
        character ^= U' ';
    }
    KeyEvent event = press(character, modifiers);
    if (!event.text.empty() && all.size() > 2 && all[2].size() > 1) {
        event.text.clear();
        for (const std::uint32_t each : all[2]) {
            event.text += utf8(each);
        }
    }
    return event;
}

/// CSI 27 ; modifiers ; code ~
KeyEvent other_key(const std::vector<std::vector<std::uint32_t>>& all)
{
    const std::uint32_t code = at(all, 2);
    const unsigned modifiers = std::max(at(all, 1), 1U) - 1;
    if (code < ' ' || code == static_cast<std::uint32_t>(k_delete)) {
        KeyEvent event = press_of_byte(static_cast<char>(code));
        event.other_modifier = (modifiers & (k_alt | k_others)) != 0;
        event.control = event.control || (modifiers & k_control) != 0;
        return event;
    }
    return press((modifiers & k_shift) != 0 ? shifted(code) : code, modifiers);
}

/// CSI key ; scan code ; character ; down ; state ; count _
KeyEvent win32(const std::vector<std::vector<std::uint32_t>>& all)
{
    constexpr std::array<std::uint32_t, 6> k_modifier_keys = {16, 17, 18, 20, 91, 144};
    const std::uint32_t key = at(all, 0), character = at(all, 2);
    const bool modifier =
        std::find(k_modifier_keys.begin(), k_modifier_keys.end(), key) != k_modifier_keys.end();
    if (at(all, 3) == 0 || modifier) {
        return {};
    }
    if (character == 0) {
        return press(0, 0);
    }
    return character < 0x80 ? press_of_byte(static_cast<char>(character)) : press(character, 0);
}

/// ESC O and a letter: keypad and other keys in application mode.
KeyEvent keypad(char c)
{
    constexpr std::string_view k_letters = "MXjklmnopqrstuvwxy";
    constexpr std::string_view k_characters = "\r=*+,-./0123456789";
    static_assert(k_letters.size() == k_characters.size());
    const std::size_t found = k_letters.find(c);
    return press(found == std::string_view::npos ? 0 : static_cast<char32_t>(k_characters[found]),
                 0);
}

KeyEvent sequence(std::string_view body, char final)
{
    const auto all = parameters(body);
    const bool is_plain =
        body.empty() || body == "[" || (body.front() >= '0' && body.front() <= ';');
    if (final == 'u' && is_plain) {
        return kitty(all);
    }
    if (final == '_' && is_plain) {
        return win32(all);
    }
    if (final == '~' && at(all, 0) == 27 && all.size() > 2) {
        return other_key(all);
    }
    constexpr std::string_view k_keys = "ABCDEFGHPQSZ~";
    const bool is_key = is_plain && k_keys.find(final) != std::string_view::npos;
    return is_key && at(all, 1, 1) != k_released ? press(0, 0) : KeyEvent{};
}

} // namespace

bool KeyEvent::is(char key) const
{
    return kind == Kind::press && !control && !other_modifier &&
           character == static_cast<unsigned char>(key);
}

bool KeyEvent::is_interrupt() const
{
    return kind == Kind::press && control && !other_modifier && lower(character) == U'c';
}

KeyEvent KeyReader::decode() const
{
    const std::string_view raw = m_raw;
    switch (m_state) {
    case State::ground:
        return press_of_byte(raw.front());
    case State::escape:
        return press(static_cast<unsigned char>(raw.back()), k_alt);
    case State::keypad:
        return keypad(raw.back());
    case State::sequence:
        return sequence(raw.substr(2, raw.size() - 3), raw.back());
    case State::paste:
    case State::mouse:
    case State::string:
    case State::string_escape:
        break;
    }
    return {};
}

KeyEvent KeyReader::finish()
{
    KeyEvent event = decode();
    m_pasting = m_raw == k_paste_begins;
    if (m_pasting) {
        event.kind = Kind::report;
    }
    event.raw = std::exchange(m_raw, {});
    m_state = State::ground;
    return event;
}

/// Ends an incomplete sequence: a lone Escape is a key press, anything else an unknown report.
KeyEvent KeyReader::given_up()
{
    KeyEvent event = m_raw.size() == 1 ? press_of_byte(k_escape) : KeyEvent{};
    event.raw = std::exchange(m_raw, {});
    m_state = State::ground;
    return event;
}

bool KeyReader::add(char c)
{
    m_raw += c;
    switch (m_state) {
    case State::ground:
        m_state = c == k_escape ? State::escape : State::ground;
        return c != k_escape;
    case State::escape:
        switch (c) {
        case '[':
            m_state = State::sequence;
            return false;
        case 'O':
            m_state = State::keypad;
            return false;
        case ']':
        case 'P':
        case 'X':
        case '^':
        case '_':
            m_state = State::string;
            return false;
        default:
            return true;
        }
    case State::sequence:
        if (m_raw == "\x1b[M") {
            m_state = State::mouse;
            return false;
        }
        return c >= '@' && m_raw != "\x1b[["; // Linux console: one more letter follows
    case State::keypad:
        return c < '0' || c > '9';
    case State::mouse:
        return m_raw.size() == k_mouse_event;
    case State::string:
        m_state = c == k_escape ? State::string_escape : State::string;
        return c == k_bell;
    case State::string_escape:
        return true;
    case State::paste:
        break;
    }
    return true;
}

std::optional<KeyEvent> KeyReader::take(std::string_view& bytes)
{
    while (!bytes.empty()) {
        const char c = bytes.front();
        if (m_pasting) {
            if (!k_paste_ends.starts_with(m_raw + c)) {
                const std::size_t end = m_raw.empty() ? bytes.find(k_escape) : 0;
                KeyEvent event{Kind::pasted, 0, false, false, {}, std::exchange(m_raw, {})};
                event.raw += bytes.substr(0, end);
                event.text = event.raw;
                bytes.remove_prefix(std::min(end, bytes.size()));
                return event;
            }
            m_raw += c;
            bytes.remove_prefix(1);
            if (m_raw == k_paste_ends) {
                m_pasting = false;
                return given_up();
            }
            continue;
        }
        const bool in_string = m_state == State::string && (c == k_bell || c == k_escape);
        const bool ends_string = m_state == State::string_escape && c == '\\';
        const bool is_foreign =
            (is_control_byte(c) && !in_string) || (m_state == State::string_escape && !ends_string);
        if ((is_foreign && m_state != State::ground) || m_raw.size() >= k_longest_event) {
            return given_up();
        }
        bytes.remove_prefix(1);
        if (add(c)) {
            return finish();
        }
    }
    return std::nullopt;
}

} // namespace gpuq
