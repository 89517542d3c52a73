// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/plain_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <iterator>
#include <vector>

namespace gpuq {
namespace {

constexpr std::size_t k_most_bytes = 256 * 1024; ///< of all lines
constexpr char k_escape = '\x1b';
constexpr char k_bell = '\x07';

int first_number(std::string_view text)
{
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// The current contents of one line, one cell per character.
class Line {
public:
    void put(std::string_view character)
    {
        if (m_at < m_cells.size()) {
            m_cells[m_at] = character;
        } else {
            m_cells.resize(m_at, " ");
            m_cells.emplace_back(character);
        }
        ++m_at;
    }
    void to_tab_stop()
    {
        do {
            put(" ");
        } while (m_at % k_tab != 0);
    }
    void go_to(std::size_t column) { m_at = std::min(column, k_longest); }
    void move(long by)
    {
        const long at = static_cast<long>(m_at) + by;
        go_to(at > 0 ? static_cast<std::size_t>(at) : 0);
    }
    void erase(int which)
    {
        if (which == 0) {
            m_cells.resize(std::min(m_at, m_cells.size()));
        } else if (which == 2) {
            m_cells.clear();
        }
    }
    void remove(std::size_t count)
    {
        if (m_at < m_cells.size()) {
            const auto from = m_cells.begin() + static_cast<std::ptrdiff_t>(m_at);
            const auto size = std::min(count, m_cells.size() - m_at);
            m_cells.erase(from, from + static_cast<std::ptrdiff_t>(size));
        }
    }
    void insert(std::size_t count)
    {
        if (m_at < m_cells.size()) {
            m_cells.insert(m_cells.begin() + static_cast<std::ptrdiff_t>(m_at),
                           std::min(count, k_longest), " ");
            m_cells.resize(std::min(m_cells.size(), k_longest)); // as a terminal does
        }
    }
    std::string text() const
    {
        std::string all;
        for (const std::string& cell : m_cells) {
            all += cell;
        }
        return all;
    }

private:
    static constexpr std::size_t k_longest = 4096;
    static constexpr std::size_t k_tab = 8;
    std::vector<std::string> m_cells;
    std::size_t m_at = 0;
};

/// True for the first byte of a printable character: not a control, not a UTF-8 continuation byte.
bool is_text(char first)
{
    const auto byte = static_cast<unsigned char>(first);
    return byte >= ' ' && byte != 0x7f && (byte < 0x80 || byte >= 0xc0);
}

/// Length in bytes of the character that begins with `first`.
std::size_t size_of_character(char first)
{
    const auto byte = static_cast<unsigned char>(first);
    return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/// Applies the escape sequence at the beginning of `bytes` to the line; returns its length.
std::size_t follow(std::string_view bytes, Line& line)
{
    const char kind = bytes.size() > 1 ? bytes[1] : k_escape;
    if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_') {
        const std::size_t bell = bytes.find(k_bell);
        const std::size_t end = bytes.find("\x1b\\", 1);
        return std::min({bell == std::string_view::npos ? bytes.size() : bell + 1,
                         end == std::string_view::npos ? bytes.size() : end + 2, bytes.size()});
    }
    if (kind != '[') { // two or three bytes, e.g. ESC ( B
        const bool longer = kind >= ' ' && kind <= '/';
        return std::min<std::size_t>(longer ? 3 : 2, bytes.size());
    }
    const auto end =
        std::find_if(bytes.begin() + 2, bytes.end(), [](char c) { return c >= '@' && c <= '~'; });
    if (end == bytes.end()) {
        return bytes.size();
    }
    const auto size = static_cast<std::size_t>(end - bytes.begin());
    const int number = first_number(bytes.substr(2, size - 2));
    const auto count = static_cast<std::size_t>(std::clamp(number, 1, 4096));
    switch (*end) {
    case 'C':
        line.move(static_cast<long>(count));
        break;
    case 'D':
        line.move(-static_cast<long>(count));
        break;
    case 'G':
        line.go_to(count - 1);
        break;
    case 'K':
        line.erase(number);
        break;
    case 'P':
        line.remove(count);
        break;
    case '@':
        line.insert(count);
        break;
    default:
        break;
    }
    return size + 1;
}

} // namespace

std::string plain_lines(std::string_view bytes, std::size_t rows)
{
    std::deque<std::string> lines;
    Line line;
    while (!bytes.empty()) {
        std::size_t size = 1;
        const char c = bytes.front();
        if (c == k_escape) {
            size = follow(bytes, line);
        } else if (c == '\n') {
            lines.push_back(line.text());
            line = Line();
        } else if (c == '\r') {
            line.go_to(0);
        } else if (c == '\b') {
            line.move(-1);
        } else if (c == '\t') {
            line.to_tab_stop();
        } else {
            size = std::min(size_of_character(c), bytes.size());
            if (is_text(c)) {
                line.put(bytes.substr(0, size));
            }
        }
        bytes.remove_prefix(size);
        if (lines.size() >= std::max<std::size_t>(rows, 1)) {
            lines.pop_front();
        }
    }
    lines.push_back(line.text());
    std::size_t total = 0;
    auto first = lines.end();
    while (first != lines.begin() && total + std::prev(first)->size() < k_most_bytes) {
        total += (--first)->size() + 2;
    }
    return fmt::format("{}", fmt::join(first, lines.end(), "\r\n"));
}

} // namespace gpuq
