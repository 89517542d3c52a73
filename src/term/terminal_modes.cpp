// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/terminal_modes.h"

#include "core/number.h"
#include "core/strings.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

/// Parses program output. The default state is that of xterm at startup. Only numbers, colours and
/// names of character sets are stored, each validated.
namespace gpuq {
namespace {

constexpr char k_escape = '\x1b';
constexpr char k_bell = '\x07';
constexpr char k_cancel = '\x18';
constexpr std::size_t k_longest_sequence = 256;
constexpr std::size_t k_longest_string = 8192;
constexpr std::size_t k_most_titles = 16, k_most_kitty = 32;
constexpr int k_wraps = 7, k_cursor_shown = 25, k_send_receive = 12;
constexpr int k_origin = 6, k_column_margins = 69;

/// DECSET modes that affect the user of the terminal: keys, cursor, screen, margins, mouse, focus,
/// pasting, reports.
constexpr std::array k_known = {1,    5,    6,    7,    9,    12,   25,   45,   47,
                                66,   67,   69,   1000, 1001, 1002, 1003, 1004, 1005,
                                1006, 1007, 1015, 1016, 1034, 1035, 1036, 1039, 1047,
                                1049, 2004, 2026, 2027, 2031, 2048, 9001};
constexpr std::array k_usually_on = {k_wraps, k_cursor_shown, 1034, 1035};
constexpr std::array k_screens = {47, 1047, 1049};
constexpr std::array k_ansi = {2, 4, k_send_receive, 20};

template <typename Numbers>
bool has(const Numbers& numbers, int number)
{
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

std::vector<int> numbers_in(std::string_view text)
{
    std::vector<int> numbers;
    while (true) {
        int number = 0;
        const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
        numbers.push_back(number);
        const std::size_t next = text.find(';', static_cast<std::size_t>(end - text.data()));
        if (next == std::string_view::npos) {
            return numbers;
        }
        text.remove_prefix(next + 1);
    }
}

std::optional<int> number_in(std::string_view text)
{
    const auto number = whole_number(text);
    return number && *number <= 9999 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

bool is_numbers(std::string_view text)
{
    return text.find_first_not_of("0123456789;:") == std::string_view::npos;
}

/// Accepts `#rrggbb`, `rgb:r/g/b` or a colour name.
bool is_colour(std::string_view text)
{
    constexpr std::size_t k_longest = 64;
    return !text.empty() && text.size() <= k_longest &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      std::string_view("#:/., %-").find(c) != std::string_view::npos;
           });
}

/// A range of SGR parameters that set or reset an attribute; mutually exclusive attributes share a
/// group.
struct Attribute {
    int first, last, group;
    bool ends;
};
constexpr std::array k_attributes = {
    Attribute{1, 1, 1, false},      Attribute{2, 2, 2, false},    Attribute{3, 3, 3, false},
    Attribute{4, 4, 4, false},      Attribute{21, 21, 4, false},  Attribute{5, 6, 5, false},
    Attribute{7, 7, 7, false},      Attribute{8, 8, 8, false},    Attribute{9, 9, 9, false},
    Attribute{10, 10, 10, true},    Attribute{11, 20, 10, false}, Attribute{23, 23, 3, true},
    Attribute{24, 24, 4, true},     Attribute{25, 25, 5, true},   Attribute{27, 27, 7, true},
    Attribute{28, 28, 8, true},     Attribute{29, 29, 9, true},   Attribute{30, 38, 30, false},
    Attribute{39, 39, 30, true},    Attribute{40, 48, 40, false}, Attribute{49, 49, 40, true},
    Attribute{51, 52, 51, false},   Attribute{53, 53, 53, false}, Attribute{54, 54, 51, true},
    Attribute{55, 55, 53, true},    Attribute{58, 58, 58, false}, Attribute{59, 59, 58, true},
    Attribute{73, 74, 73, false},   Attribute{75, 75, 73, true},  Attribute{90, 97, 30, false},
    Attribute{100, 107, 40, false},
};
constexpr int k_normal_intensity = 22; ///< resets two attributes

/// Number of parameters in `38;5;n` and `38;2;r;g;b`.
std::size_t parameters_of_colour(const std::vector<std::string_view>& all, std::size_t i)
{
    const bool is_long = all[i] == "38" || all[i] == "48" || all[i] == "58";
    if (!is_long || i + 1 >= all.size()) {
        return 1;
    }
    const std::size_t wanted = all[i + 1] == "2" ? 5 : all[i + 1] == "5" ? 3 : 1;
    return std::min(wanted, all.size() - i);
}

} // namespace

void TerminalModes::feed(std::string_view bytes)
{
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        if (m_state == State::text) {
            at = std::min(bytes.find_first_of("\x1b\x0e\x0f", at), bytes.size());
            if (at == bytes.size()) {
                return;
            }
            if (bytes[at] == k_escape) {
                m_state = State::escape;
            } else {
                m_charsets.shift = bytes[at];
                ++m_version;
            }
            continue;
        }
        const char c = bytes[at];
        const bool cancels = c == k_cancel || c == '\x1a';
        switch (m_state) {
        case State::text:
            break;
        case State::escape:
            m_sequence.clear();
            m_cut = false;
            escape(c);
            break;
        case State::intermediate:
            if (c >= ' ' && c <= '/' && m_sequence.size() < 3) {
                m_sequence += c;
            } else {
                m_state = c == k_escape ? State::escape : State::text;
                if (c >= '0' && c <= '~') {
                    end_escape(c);
                }
            }
            break;
        case State::sequence:
            if (c >= '@' && c <= '~') {
                m_state = State::text;
                end_sequence(c);
            } else if (c == k_escape) {
                m_state = State::escape;
            } else if (cancels || m_sequence.size() >= k_longest_sequence) {
                m_state = State::text;
            } else if (c >= ' ') { // ignore control bytes inside the sequence
                m_sequence += c;
            }
            break;
        case State::string: // a title or the like: up to BEL or ESC \.
            if (c == k_bell) {
                m_state = State::text;
                end_string();
            } else if (c == k_escape) {
                m_state = State::string_escape;
            } else if (cancels) {
                m_state = State::text;
            } else if (m_sequence[0] == ']') {
                m_cut = m_cut || m_sequence.size() >= k_longest_string;
                if (!m_cut) {
                    m_sequence += c;
                }
            }
            break;
        case State::string_escape:
            m_state = State::text;
            if (c == '\\') {
                end_string();
            } else {
                --at; // not a string terminator: start of another sequence
                m_state = State::escape;
            }
            break;
        }
    }
}

void TerminalModes::escape(char c)
{
    m_state = State::text;
    switch (c) {
    case '[':
        m_state = State::sequence;
        return;
    case k_escape:
        m_state = State::escape;
        return;
    case ']':
    case 'P':
    case 'X':
    case '^':
    case '_':
        m_state = State::string;
        m_sequence = c; // only strings that begin with ] are parsed
        return;
    case '=':
    case '>':
        m_keypad = c == '=';
        break;
    case 'c':
        reset();
        break;
    case 'n':
    case 'o':
    case '|':
    case '}':
    case '~':
        if (c == 'n' || c == 'o') {
            m_charsets.shift = std::string{k_escape, c};
        }
        break;
    default:
        if (c >= ' ' && c <= '/') {
            m_sequence = c;
            m_state = State::intermediate;
        }
        return;
    }
    ++m_version;
}

/// Escape sequences with intermediates: character sets, encodings.
void TerminalModes::end_escape(char final)
{
    constexpr std::string_view k_sets = "()*+";
    const std::size_t set = k_sets.find(m_sequence[0]);
    if (set != std::string_view::npos) {
        m_charsets.sets[set] = m_sequence + final;
    } else if (m_sequence == "%") {
        m_not_utf8 = final == '@';
    } else if (m_sequence == " " && (final == 'F' || final == 'G')) {
        m_eight_bit = final == 'G';
    }
    ++m_version;
}

void TerminalModes::end_sequence(char final)
{
    const std::string_view text = m_sequence;
    const bool is_plain = is_numbers(text);
    ++m_version;
    if (final == 'h' || final == 'l') {
        return text.starts_with('?') ? set_private(final == 'h')
               : is_plain            ? set_ansi(final == 'h')
                                     : void();
    }
    if (final == 'm' && is_plain) {
        return set_attributes();
    }
    if (final == 'u' && !text.empty() && text.find_first_of("><=") == 0) {
        return set_kitty(text.front());
    }
    if (final == 'r' && is_plain) {
        m_rows = text;
    } else if (final == 's' && is_plain && m_modes.contains(k_column_margins)) {
        m_columns = text;
    } else if (final == 't' && is_plain) {
        stack_title();
    } else if (final == 'i' && (text == "5" || text == "4")) {
        m_printing = text == "5";
    } else if (final == 'q' && text.ends_with(' ') && is_numbers(text.substr(0, text.size() - 1))) {
        m_cursor_shape = text == "0 " || text == " " ? "" : text;
    } else if ((final == 'm' || final == 'f' || final == 'n') && text.starts_with('>')) {
        const auto numbers = numbers_in(text.substr(1));
        const std::string option = std::to_string(numbers[0]) + (final == 'n' ? 'm' : final);
        if (final != 'n' && numbers.size() > 1 && numbers[0] <= 9 && is_numbers(text.substr(1))) {
            m_key_options[option] = std::to_string(numbers[1]);
        } else {
            m_key_options.erase(option);
        }
        std::erase_if(m_key_options, [](const auto& each) { return each.second == "0"; });
    } else if (text == "!" && final == 'p') {
        soft_reset();
    }
}

void TerminalModes::set_private(bool on)
{
    for (const int mode : numbers_in(std::string_view(m_sequence).substr(1))) {
        if (!has(k_known, mode)) {
            continue;
        }
        if (on == has(k_usually_on, mode)) {
            m_modes.erase(mode);
        } else {
            m_modes[mode] = on;
        }
        if (mode == k_column_margins) {
            m_columns.clear();
        }
    }
}

void TerminalModes::set_ansi(bool on)
{
    for (const int mode : numbers_in(m_sequence)) {
        if (!has(k_ansi, mode)) {
            continue;
        }
        if (on == (mode == k_send_receive)) {
            m_ansi.erase(mode);
        } else {
            m_ansi[mode] = on;
        }
    }
}

void TerminalModes::set_attributes()
{
    const auto all = split(m_sequence, ";");
    for (std::size_t i = 0; i < all.size();) {
        const std::size_t count = parameters_of_colour(all, i);
        const int number = number_in(all[i].substr(0, all[i].find(':'))).value_or(0);
        if (number == 0) {
            m_attributes.clear();
        } else if (number == k_normal_intensity) {
            m_attributes.erase(1);
            m_attributes.erase(2);
        }
        for (const Attribute& each : k_attributes) {
            if (number < each.first || number > each.last) {
                continue;
            }
            m_attributes.erase(each.group);
            if (!each.ends && all[i] != "4:0") {
                const char* const begin = all[i].data();
                const std::string_view last = all[i + count - 1];
                m_attributes[each.group] = std::string(begin, last.data() + last.size());
            }
        }
        i += count;
    }
}

/// ESC [ > flags u pushes, ESC [ < count u pops, ESC [ = flags ; how u sets.
void TerminalModes::set_kitty(char how)
{
    const auto numbers = numbers_in(std::string_view(m_sequence).substr(1));
    constexpr int k_all = 31;
    const auto flags = static_cast<unsigned>(numbers[0] & k_all);
    KittyKeys& keys = kitty();
    if (how == '>') {
        if (keys.stack.size() >= k_most_kitty) {
            keys.stack.erase(keys.stack.begin());
        }
        keys.stack.push_back(keys.flags);
        keys.flags = flags;
    } else if (how == '<') {
        const auto count = static_cast<std::size_t>(std::max(numbers[0], 1));
        const std::size_t left = keys.stack.size() - std::min(count, keys.stack.size());
        keys.flags = count > keys.stack.size() ? 0 : keys.stack[left];
        keys.stack.resize(left);
    } else {
        const int mode = numbers.size() > 1 ? numbers[1] : 1;
        keys.flags = mode == 2 ? keys.flags | flags : mode == 3 ? keys.flags & ~flags : flags;
    }
}

/// ESC [ 22 ; n t pushes the title, ESC [ 23 ; n t pops it.
void TerminalModes::stack_title()
{
    const auto numbers = numbers_in(m_sequence);
    if (numbers[0] == 22 && m_titles.size() < k_most_titles) {
        m_titles.push_back(std::to_string(numbers.size() > 1 ? std::clamp(numbers[1], 0, 2) : 0));
    } else if (numbers[0] == 23 && !m_titles.empty()) {
        m_titles.pop_back();
    }
}

void TerminalModes::end_string()
{
    if (m_sequence[0] != ']' || m_cut) {
        return;
    }
    const std::string_view text = std::string_view(m_sequence).substr(1);
    const std::size_t end = std::min(text.find(';'), text.size());
    const int number = number_in(text.substr(0, end)).value_or(-1);
    const std::string_view rest = text.substr(std::min(end + 1, text.size()));
    constexpr int k_colour = 4, k_first = 10, k_last = 19, k_link = 8, k_progress = 9,
                  k_reset = 100;
    if (number == k_colour) {
        set_colour(rest);
    } else if (number >= k_first && number <= k_last) {
        int which = number; // further values set the following colours
        for (const std::string_view colour : split(rest, ";")) {
            if (is_colour(colour) && which <= k_last) {
                m_colours[which] = colour;
            }
            ++which;
        }
    } else if (number == k_reset + k_colour && rest.empty()) {
        m_palette.clear();
    } else if (number == k_reset + k_colour) {
        for (const int each : numbers_in(rest)) {
            m_palette.erase(each);
        }
    } else if (number >= k_reset + k_first && number <= k_reset + k_last) {
        m_colours.erase(number - k_reset);
    } else if (number == k_link) {
        m_link = rest.find(';') + 1 < rest.size();
    } else if (number == k_progress && rest.starts_with("4;")) {
        m_progress = !rest.starts_with("4;0");
    }
    ++m_version;
}

/// Parses pairs of an index and a colour.
void TerminalModes::set_colour(std::string_view text)
{
    const auto parts = split(text, ";");
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
        const auto number = number_in(parts[i]);
        constexpr int k_colours = 256;
        if (number && *number < k_colours && is_colour(parts[i + 1])) {
            m_palette[*number] = parts[i + 1];
        }
    }
}

/// DECSTR, soft reset.
void TerminalModes::soft_reset()
{
    for (const int mode : {1, k_origin, k_wraps, k_cursor_shown, k_column_margins}) {
        m_modes.erase(mode);
    }
    m_ansi.clear();
    m_keypad = false;
    m_charsets = {};
    m_attributes.clear();
    m_rows.clear();
    m_columns.clear();
}

void TerminalModes::reset()
{
    TerminalModes usual;
    usual.m_version = m_version;
    *this = std::move(usual);
}

bool TerminalModes::on_other_screen() const
{
    return std::any_of(k_screens.begin(), k_screens.end(),
                       [this](int mode) { return m_modes.contains(mode); });
}

bool TerminalModes::encodes_keys() const
{
    return m_kitty[on_other_screen() ? 1 : 0].flags != 0 || !m_key_options.empty() ||
           m_modes.contains(9001);
}

} // namespace gpuq
