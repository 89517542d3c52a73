// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/printable.h"

#include "term/sanitise.h"

#include <algorithm>
#include <utility>

namespace gpuq::cli {
namespace {

constexpr std::string_view k_begin = "\x1b[", k_usual = "\x1b[0m", k_redraw = "\r\x1b[K";
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

/// The size of the part of `text` that does not end within a sequence or a character.
std::size_t size_of_complete(std::string_view text)
{
    const std::size_t escape = text.find_last_of('\x1b');
    if (escape != std::string_view::npos && text.size() - escape < k_longest_colour) {
        const std::string_view tail = text.substr(escape);
        const bool may_continue =
            tail.size() < k_begin.size()
                ? k_begin.starts_with(tail)
                : tail.starts_with(k_begin) &&
                      tail.find_first_not_of("0123456789;:", k_begin.size()) ==
                          std::string_view::npos;
        if (may_continue) {
            return escape;
        }
    }
    for (std::size_t size = 1; size <= std::min<std::size_t>(3, text.size()); ++size) {
        const auto byte = static_cast<unsigned char>(text[text.size() - size]);
        if (byte >= 0xc0 && byte <= 0xf4) {
            const std::size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
            return size < whole ? text.size() - size : text.size();
        }
        if (byte < 0x80 || byte > 0xf4) {
            break;
        }
    }
    return text.size();
}

} // namespace

std::string Printable::feed(std::string_view bytes)
{
    std::string text;
    for (const char byte : bytes) {
        const bool is_line_end = byte == '\n' && std::exchange(m_after_cr, false);
        if (is_line_end && !m_is_live) {
            continue; // CR LF is one line end
        }
        m_after_cr = byte == '\r';
        if (byte == '\r' && m_is_live) {
            if (m_line == "\r") {
                continue;
            }
            m_is_open = m_is_open || !m_line.empty();
            text += converted(m_line);
            m_line.assign(1, '\r');
        } else if (byte == '\n' || byte == '\r') {
            m_line.erase(0, m_line == "\r" ? 1 : 0);
            text += finished();
        } else {
            m_line += byte;
            take_return(text);
            if (m_line.size() >= k_longest_line) {
                text += finished();
            }
        }
    }
    if (m_is_live) {
        take_complete(text);
    }
    return text;
}

/// Decides on a CR at the beginning of the line as soon as the bytes after it allow.
void Printable::take_return(std::string& text)
{
    if (!m_line.starts_with('\r') || (k_redraw.starts_with(m_line) && m_line != k_redraw)) {
        return;
    }
    const bool is_redraw = m_line == k_redraw;
    text += is_redraw ? k_redraw : "\n";
    m_line.erase(0, is_redraw ? k_redraw.size() : 1);
    m_is_open = is_redraw;
}

void Printable::take_complete(std::string& text)
{
    if (!m_line.starts_with('\r')) {
        const std::size_t size = size_of_complete(m_line);
        text += converted(std::string_view(m_line).substr(0, size));
        m_is_open = m_is_open || size > 0;
        m_line.erase(0, size);
    }
}

std::string Printable::end()
{
    if (m_line == "\r") {
        m_line.clear();
    }
    std::string text = m_line.empty() && !m_is_open ? "" : finished();
    return std::exchange(m_coloured, false) ? text.append(k_usual) : text;
}

std::string Printable::finished()
{
    m_is_open = false;
    return converted(std::exchange(m_line, {})) + '\n';
}

std::string Printable::converted(std::string_view bytes)
{
    std::string text;
    std::string_view rest = bytes;
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
    return text;
}

} // namespace gpuq::cli
