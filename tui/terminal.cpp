// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/terminal.h"

#include "report/table.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <langinfo.h>
#include <termios.h>
#include <unistd.h>

// The only file that uses ncurses.
#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <ncurses.h>
#include <term.h>
#undef back_tab // macros of term.h
#undef columns
#undef lines

namespace gpuq::tui {
namespace {

constexpr int k_escape_ms = 25;
constexpr wint_t k_ctrl_r = 18, k_ctrl_z = 26;
/// Two clicks within this time are a double click.
constexpr std::chrono::milliseconds k_double_click{400};
/// Sequences that ncurses' own end would write, for a process that dies of a signal.
constexpr const char* k_mouse_off = "\x1b[?1003l\x1b[?1006l\x1b[?1000l";
/// Reports of the pointer, which ncurses does not switch on itself.
constexpr std::string_view k_pointer_on = "\x1b[?1003h", k_pointer_off = "\x1b[?1003l";
/// Marks of pasted text, so that it is not taken for keys; the sequences around it, and their codes
/// as keys of ncurses, beyond its own.
constexpr const char *k_paste_on = "\x1b[?2004h", *k_paste_off = "\x1b[?2004l";
constexpr const char *k_paste_begin = "\x1b[200~", *k_paste_end = "\x1b[201~";
constexpr int k_paste_begins = 0x7001, k_paste_ends = 0x7002;
constexpr std::size_t k_longest_paste = 10'000;
/// An end that has not arrived by then is lost.
constexpr std::chrono::seconds k_paste_limit{1};
/// The smallest numbers of colours of a terminal with a palette of 6 x 6 x 6 colours, and of one
/// whose colours are 0xRRGGBB.
constexpr int k_palette = 256, k_direct = 1 << 24;

// For the signal handler, which may call neither ncurses nor malloc.
std::array<char, 256> exit_sequence{};
std::size_t size_to_leave = 0;
termios modes_before{};
bool has_modes = false;

const char* sequence_of(const char* name)
{
    const char* const sequence = ::tigetstr(const_cast<char*>(name));
    return sequence == reinterpret_cast<char*>(-1) ? nullptr : sequence;
}

void write_now(std::string_view sequence)
{
    (void)!::write(STDOUT_FILENO, sequence.data(), sequence.size());
}

void write_if_mouse(std::string_view sequence)
{
    if (sequence_of("kmous") != nullptr) {
        write_now(sequence);
    }
}

constexpr int k_deadly[] = {SIGHUP, SIGINT,  SIGQUIT, SIGTERM, SIGSEGV,
                            SIGBUS, SIGABRT, SIGFPE,  SIGILL};

void give_back_and_die(int number)
{
    (void)!::write(STDOUT_FILENO, exit_sequence.data(), size_to_leave);
    if (has_modes) {
        ::tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
    }
    ::signal(number, SIG_DFL);
    ::raise(number);
}

void remember_how_to_leave()
{
    std::string arguments;
    arguments = k_mouse_off;
    arguments += k_paste_off;
    for (const char* name : {"rmkx", "sgr0", "cnorm", "rmcup"}) {
        if (const char* const sequence = sequence_of(name)) {
            arguments += sequence;
        }
    }
    size_to_leave = std::min(arguments.size(), exit_sequence.size());
    std::copy_n(arguments.begin(), size_to_leave, exit_sequence.begin());
    for (const int number : k_deadly) {
        struct sigaction action {};
        action.sa_handler = give_back_and_die;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        ::sigaction(number, &action, nullptr);
    }
}

void forget_how_to_leave()
{
    for (const int number : k_deadly) {
        ::signal(number, SIG_DFL);
    }
}

Special special_of(wint_t code)
{
    switch (code) {
    case KEY_UP:
        return Special::up;
    case KEY_DOWN:
        return Special::down;
    case KEY_PPAGE:
        return Special::page_up;
    case KEY_NPAGE:
        return Special::page_down;
    case KEY_LEFT:
        return Special::left;
    case KEY_RIGHT:
        return Special::right;
    case KEY_DC:
        return Special::erase;
    case KEY_HOME:
        return Special::home;
    case KEY_END:
        return Special::end;
    case KEY_ENTER:
        return Special::enter;
    case KEY_BACKSPACE:
        return Special::backspace;
    case KEY_BTAB:
        return Special::back_tab;
    default:
        return Special::none;
    }
}

std::string in_base64(std::string_view text)
{
    constexpr std::string_view k_digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string coded;
    for (std::size_t i = 0; i < text.size(); i += 3) {
        unsigned bits = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            bits =
                bits << 8U | (i + j < text.size() ? static_cast<unsigned char>(text[i + j]) : 0U);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            coded += i + j > text.size() ? '=' : k_digits[bits >> (18 - 6 * j) & 0x3fU];
        }
    }
    return coded;
}

/// The nearest colour of the 6 x 6 x 6 cube that begins at 16 in a palette of 256.
int palette_number(std::uint32_t rgb)
{
    const auto level = [&](unsigned shift) {
        const auto value = static_cast<int>(rgb >> shift & 0xffU);
        return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
    };
    return 16 + 36 * level(16) + 6 * level(8) + level(0);
}

/// The description of this kind of terminal with 24-bit colours (xterm-direct for xterm-256color),
/// if this machine has one, else `kind`.
std::string direct_type(const std::string& kind)
{
    const std::string name = kind.substr(0, kind.find('-')) + "-direct";
    int status = 0;
    const bool is_known = ::setupterm(name.c_str(), STDOUT_FILENO, &status) == OK;
    if (is_known) {
        ::del_curterm(::set_curterm(nullptr));
    }
    return is_known ? name : kind;
}

} // namespace

Result<std::unique_ptr<Terminal>> Terminal::open(Colours colours)
{
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
        return fail(Error::Kind::usage, "not a terminal: gpuq top --once prints the display once");
    }
    // ncurses prefers them to the terminal's size, which may have changed since they were set.
    ::unsetenv("LINES");
    ::unsetenv("COLUMNS");
    const char* kind = std::getenv("TERM");
    int status = 0;
    if (kind == nullptr || ::setupterm(kind, STDOUT_FILENO, &status) != OK) {
        return fail(Error::Kind::usage,
                    fmt::format("unknown terminal type '{}': set TERM to a type that this machine "
                                "knows (xterm), or use gpuq top --once",
                                sanitised(kind == nullptr ? "" : kind)));
    }
    if (sequence_of("cup") == nullptr) {
        return fail(Error::Kind::usage,
                    fmt::format("unsuitable terminal type '{}': gpuq top --once prints the "
                                "display once",
                                sanitised(kind)));
    }
    // The characters, but not the format of numbers, which is the same everywhere.
    std::setlocale(LC_CTYPE, "");
    const bool has_letters = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
    // The fonts of Linux' console have at most 512 characters, and none of those for charts.
    const bool has_all = has_letters && std::string_view(kind) != "linux";
    has_modes = ::tcgetattr(STDIN_FILENO, &modes_before) == 0;
    ::set_escdelay(k_escape_ms);
    const std::string type = colours == Colours::direct ? direct_type(kind) : kind;
    SCREEN* const screen = ::newterm(type.c_str(), stdout, stdin);
    if (screen == nullptr) {
        return fail(Error::Kind::usage,
                    fmt::format("unsuitable terminal type '{}': gpuq top --once prints the "
                                "display once",
                                sanitised(kind)));
    }
    return std::unique_ptr<Terminal>(new Terminal(screen, colours,
                                                  has_all       ? Characters::all
                                                  : has_letters ? Characters::letters
                                                                : Characters::ascii));
}

Terminal::Terminal(void* screen, Colours colours, Characters characters)
    : m_screen(screen)
    , m_colour(colours != Colours::none && ::has_colors() && ::start_color() == OK)
    , m_characters(characters)
{
    m_theme.ascii = characters != Characters::all;
    const char* const background = std::getenv("COLORFGBG");
    m_theme.light = report::is_light(background == nullptr ? "" : background);
    if (m_colour) {
        ::use_default_colors();
        const bool has_basic =
            colours == Colours::basic || (colours == Colours::automatic && m_theme.light);
        m_theme.gradients = COLORS >= k_palette && !has_basic;
    }
    enter();
}

Terminal::~Terminal()
{
    leave();
    forget_how_to_leave();
    ::delscreen(static_cast<SCREEN*>(m_screen));
}

void Terminal::enter()
{
    ::raw(); // Ctrl-C and Ctrl-Z are keys of the view, and never for a run
    ::noecho();
    ::nonl();
    ::keypad(stdscr, TRUE);
    ::nodelay(stdscr, TRUE);
    ::curs_set(0);
    ::mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED | REPORT_MOUSE_POSITION,
                nullptr);
    ::mouseinterval(0); // ncurses would wait for a second click
    ::refresh();
    write_if_mouse(k_pointer_on);
    ::define_key(k_paste_begin, k_paste_begins);
    ::define_key(k_paste_end, k_paste_ends);
    write_now(k_paste_on);
    redraw();
    remember_how_to_leave();
}

void Terminal::drop_keys()
{
    ::flushinp();
}

void Terminal::redraw()
{
    ::clearok(stdscr, TRUE);
    m_shown.reset();
}

void Terminal::leave()
{
    write_now(k_paste_off);
    m_paste.reset();
    write_if_mouse(k_pointer_off);
    ::mousemask(0, nullptr);
    ::curs_set(1);
    ::endwin();
    // Ctrl-C is for the process that has the terminal now, and not for this one.
    for (const int number : {SIGINT, SIGQUIT}) {
        ::signal(number, SIG_IGN);
    }
    // Ctrl-Z is for both, but ncurses' handler would set our modes and draw on the other's screen
    // when both continue.
    ::signal(SIGTSTP, SIG_DFL);
}

Resized Terminal::size() const
{
    return {LINES, COLS};
}

int Terminal::number_of(std::uint32_t colour) const
{
    if ((colour & k_rgb) == 0) {
        return static_cast<int>(colour % 8);
    }
    const std::uint32_t rgb = colour & ~k_rgb;
    return COLORS >= k_direct ? static_cast<int>(rgb) : palette_number(rgb);
}

int Terminal::pair(const Style& style)
{
    const std::pair colours{style.fg ? number_of(*style.fg) : -1,
                            style.bg ? number_of(*style.bg) : -1};
    const auto known = m_pairs.find(colours);
    if (known != m_pairs.end()) {
        return known->second;
    }
    const int number = static_cast<int>(m_pairs.size()) + 1;
    if (number >= COLOR_PAIRS ||
        ::init_extended_pair(number, colours.first, colours.second) != OK) {
        return 0;
    }
    m_pairs.emplace(colours, number);
    return number;
}

void Terminal::set_style(const Style& wanted)
{
    const Style style = m_theme.light ? for_light(wanted) : wanted;
    const bool bright = m_colour && style.fg && *style.fg >= 8 && *style.fg < 16;
    attr_t attributes = A_NORMAL;
    attributes |= style.bold || bright ? A_BOLD : 0;
    attributes |= style.dim ? A_DIM : 0;
    attributes |= style.underline ? A_UNDERLINE : 0;
    attributes |= style.reverse ? A_REVERSE : 0;
    int number = m_colour && (style.fg || style.bg) ? pair(style) : 0;
    ::attr_set(attributes, 0, &number); // a number too large for a short
}

void Terminal::draw_row(const Canvas& canvas, int row)
{
    ::move(row, 0);
    std::string text;
    Style style = canvas.at(row, 0).style;
    const auto flush = [&] {
        set_style(style);
        ::addstr(text.c_str());
        text.clear();
    };
    for (int column = 0; column < canvas.columns(); ++column) {
        const Canvas::Cell& cell = canvas.at(row, column);
        if (cell.style != style) {
            flush();
            style = cell.style;
        }
        const bool plain = cell.glyph.size() == 1;
        text += plain || m_characters == Characters::all ? cell.glyph
                : cell.glyph == "…"                      ? "~"
                : m_characters == Characters::letters    ? cell.glyph
                                                         : "?";
    }
    flush();
}

void Terminal::show(const Canvas& canvas)
{
    const bool same_size =
        m_shown && m_shown->rows() == canvas.rows() && m_shown->columns() == canvas.columns();
    bool changed = false;
    for (int row = 0; row < canvas.rows(); ++row) {
        bool same = same_size;
        for (int column = 0; same && column < canvas.columns(); ++column) {
            same = canvas.at(row, column) == m_shown->at(row, column);
        }
        if (!same) {
            draw_row(canvas, row);
            changed = true;
        }
    }
    if (changed) {
        ::refresh();
        m_shown = canvas;
    }
}

std::optional<Message> Terminal::next()
{
    wint_t code = 0;
    const int kind = ::get_wch(&code);
    if (m_paste) {
        return pasted(kind, code);
    }
    if (kind == ERR) {
        return std::nullopt;
    }
    if (kind == KEY_CODE_YES && code == k_paste_begins) {
        m_paste.emplace();
        m_pasted_at = std::chrono::steady_clock::now();
        return next();
    }
    if (kind == KEY_CODE_YES) {
        if (code == KEY_RESIZE) {
            redraw(); // terminals differ in which lines they keep
            return size();
        }
        if (code == KEY_F(5)) {
            return Key{Special::none, k_ctrl_r}; // no text, so that it works in forms as well
        }
        if (code == KEY_MOUSE) {
            return mouse_event();
        }
        return Key{special_of(code), 0};
    }
    if (code == k_ctrl_z) {
        leave();
        ::kill(0, SIGTSTP);
        enter();
        return size();
    }
    if (code == '\r' || code == '\n') {
        return Key{Special::enter, 0};
    }
    if (code == 27) {
        return Key{Special::escape, 0};
    }
    return Key{Special::none, static_cast<char32_t>(code)};
}

/// Takes the characters after the beginning of a paste; the text as soon as it is complete.
std::optional<Message> Terminal::pasted(int kind, wint_t code)
{
    for (; kind != ERR; kind = ::get_wch(&code)) {
        m_pasted_at = std::chrono::steady_clock::now();
        if (kind == KEY_CODE_YES && code == KEY_RESIZE) {
            redraw();
            return size();
        }
        if (kind == KEY_CODE_YES && code == k_paste_ends) {
            return Paste{*std::exchange(m_paste, std::nullopt)};
        }
        if (kind == OK && m_paste->size() < k_longest_paste) {
            *m_paste += static_cast<char32_t>(code);
        }
    }
    if (std::chrono::steady_clock::now() - m_pasted_at < k_paste_limit) {
        return std::nullopt;
    }
    return Paste{*std::exchange(m_paste, std::nullopt)};
}

/// A key without a function for events that have none, so that the next one is read.
std::optional<Message> Terminal::mouse_event()
{
    MEVENT event;
    if (::getmouse(&event) != OK) {
        return Key{};
    }
    Mouse mouse{Mouse::Action::click, event.y, event.x};
    if ((event.bstate & BUTTON4_PRESSED) != 0) {
        mouse.action = Mouse::Action::wheel_up;
    } else if ((event.bstate & BUTTON5_PRESSED) != 0) {
        mouse.action = Mouse::Action::wheel_down;
    } else if ((event.bstate & BUTTON1_PRESSED) == 0) {
        mouse.action = Mouse::Action::move; // also at the release of a button
    } else {
        const auto now = std::chrono::steady_clock::now();
        const std::pair place{mouse.row, mouse.column};
        const bool is_second =
            m_click && m_click->second == place && now - m_click->first < k_double_click;
        mouse.action = is_second ? Mouse::Action::double_click : Mouse::Action::click;
        m_click = is_second ? std::nullopt : std::optional(std::pair(now, place));
    }
    return mouse;
}

void Terminal::notify(const std::string& text)
{
    std::string safe = sanitised(text);
    std::replace(safe.begin(), safe.end(), ';', ','); // separates the fields of OSC 777
    // A terminal that knows both would show it twice.
    const std::string_view kind = std::getenv("TERM") == nullptr ? "" : std::getenv("TERM");
    const bool has_777 = std::getenv("VTE_VERSION") != nullptr || kind.starts_with("rxvt") ||
                         kind.starts_with("foot");
    const std::string sequence =
        fmt::format("\x1b]{}{}\x1b\\\a", has_777 ? "777;notify;gpuq;" : "9;", safe);
    (void)!::write(STDOUT_FILENO, sequence.data(), sequence.size());
}

void Terminal::copy(const std::string& text)
{
    const std::string arguments = "\x1b]52;c;" + in_base64(text) + "\a";
    (void)!::write(STDOUT_FILENO, arguments.data(), arguments.size());
}

} // namespace gpuq::tui
