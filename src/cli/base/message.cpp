// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/message.h"

#include "term/sanitise.h"

#include <algorithm>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

struct Reader {
    std::string called;
    Verbs verbs;
    std::function<void(std::size_t)> wrote;
};

Reader& reader()
{
    static Reader one;
    return one;
}

bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '/' || c == '_' ||
           c == '.';
}

/// Whether `text` begins with a verb.
bool begins_with_verb(std::string_view text, Verbs verbs)
{
    const auto end = std::find_if_not(text.begin(), text.end(), is_letter);
    auto word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    word.remove_suffix(word.ends_with('.') ? 1 : 0); // the end of the sentence
    return find_verb(verbs, word) != nullptr;
}

std::string in_the_last_row(int terminal, const std::string& message)
{
    winsize size{};
    const bool known = ::ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    const std::size_t width = known ? size.ws_col : 80;
    // Saves cursor, attributes and character sets; moves to the last row, in reverse; restores
    // them.
    return "\x1b"
           "7\x1b(B\x0f\x1b[999;1H\x1b[0;7m" +
           clipped(message, width) +
           "\x1b[0m\x1b[K\x1b"
           "8";
}

std::string line_of(const std::string& message, Cursor cursor)
{
    switch (cursor) {
    case Cursor::line_start:
        break;
    case Cursor::middle:
        return "\n" + message + "\n";
    case Cursor::raw:
        return "\r\n" + message + "\r\n";
    case Cursor::other_screen:
        return in_the_last_row(STDERR_FILENO, message);
    }
    return message + "\n";
}

std::string message_of(std::string_view text)
{
    return "gpuq: " + sanitised(as_typed(text));
}

} // namespace

Audience::Audience(std::string called, Verbs verbs, std::function<void(std::size_t)> wrote)
{
    reader() = {std::move(called), verbs, std::move(wrote)};
}

Audience::~Audience()
{
    reader() = {};
}

std::string as_typed(std::string_view text)
{
    return as_typed(text, reader().called, reader().verbs);
}

std::string as_typed(std::string_view text, std::string_view called, Verbs verbs)
{
    constexpr std::string_view k_gpuq = "gpuq ";
    std::string typed;
    while (!called.empty()) {
        const std::size_t found = text.find(k_gpuq);
        if (found == std::string_view::npos) {
            break;
        }
        const bool is_word = found == 0 || !is_letter(text[found - 1]);
        const std::string_view rest = text.substr(found + k_gpuq.size());
        typed += text.substr(0, found);
        typed +=
            is_word && begins_with_verb(rest, verbs) ? called : k_gpuq.substr(0, k_gpuq.size() - 1);
        typed += ' ';
        text = rest;
    }
    return typed.append(text);
}

void print_note(bool is_quiet, std::string_view text)
{
    if (!is_quiet) {
        print_message(text);
    }
}

void write_own(std::string_view bytes)
{
    if (reader().wrote) {
        reader().wrote(bytes.size());
    }
    [[maybe_unused]] const ssize_t count = ::write(STDERR_FILENO, bytes.data(), bytes.size());
}

void print_message(std::string_view text, Cursor cursor)
{
    const bool terminal = isatty(STDERR_FILENO) == 1;
    // One write, so that lines of several processes are not mixed.
    write_own(line_of(message_of(text), terminal ? cursor : Cursor::line_start));
}

void show_in_last_row(int terminal, std::string_view text)
{
    const std::string row = in_the_last_row(terminal, message_of(text));
    [[maybe_unused]] const ssize_t count = ::write(terminal, row.data(), row.size());
}

} // namespace gpuq::cli
