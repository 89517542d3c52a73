// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/printable.h"

#include "term/sanitise.h"

#include <algorithm>
#include <utility>

namespace gpuq::cli {
namespace {

constexpr std::string_view k_begin = "\x1b[", k_usual = "\x1b[0m";
constexpr std::size_t k_longest_line = 64 << 10;
constexpr std::size_t k_longest_colour = 64;

/// The size of the colour sequence that `text` begins with; 0: none.
std::size_t size_of_colour(std::string_view text)
{
    if (!text.starts_with(k_begin)) {
        return 0;
    }
    const std::size_t end = text.find_first_not_of("0123456789;:", k_begin.size());
    return end < k_longest_colour && end < text.size() && text[end] == 'm' ? end + 1 : 0;
}

} // namespace

std::string Printable::feed(std::string_view bytes)
{
    std::string text;
    for (const char byte : bytes) {
        const bool is_line_end = byte == '\n' && std::exchange(m_after_cr, false);
        if (is_line_end) {
            continue; // CR LF is one line end
        }
        m_after_cr = byte == '\r';
        if (byte == '\n' || byte == '\r') {
            text += finished();
        } else {
            m_line += byte;
            if (m_line.size() >= k_longest_line) {
                text += finished();
            }
        }
    }
    return text;
}

std::string Printable::end()
{
    std::string text = m_line.empty() ? "" : finished();
    return std::exchange(m_coloured, false) ? text.append(k_usual) : text;
}

std::string Printable::finished()
{
    const std::string line = std::exchange(m_line, {});
    std::string text;
    std::string_view rest = line;
    while (!rest.empty()) {
        if (const std::size_t colour = size_of_colour(rest)) {
            text += rest.substr(0, colour);
            rest.remove_prefix(colour);
            m_coloured = true;
            continue;
        }
        if (rest.front() == '\t') {
            text += '\t';
            rest.remove_prefix(1);
            continue;
        }
        const std::size_t next = std::min(rest.find_first_of("\x1b\t", 1), rest.size());
        text += sanitised(rest.substr(0, next));
        rest.remove_prefix(next);
    }
    return text + '\n';
}

} // namespace gpuq::cli
