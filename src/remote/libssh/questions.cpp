// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/questions.h"

#include "term/sanitise.h"

#include <array>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

constexpr std::size_t k_longest_answer = 1024;
constexpr std::size_t k_longest_shown = 2000;

void wipe(std::optional<std::string>& secret)
{
    if (secret) {
        ::explicit_bzero(secret->data(), secret->size());
        secret.reset();
    }
}

void ring(int event)
{
    const std::uint64_t one = 1;
    (void)!::write(event, &one, sizeof one);
}

/// Switches a terminal's echo off. Typed characters so far are discarded, so that none of them
/// becomes an answer.
class WithoutEcho {
public:
    WithoutEcho(int terminal, bool echo)
        : m_terminal(terminal)
        , m_changed(::tcgetattr(terminal, &m_before) == 0)
    {
        termios modes = m_before;
        if (!echo) {
            modes.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL);
        }
        m_changed = m_changed && ::tcsetattr(terminal, TCSAFLUSH, &modes) == 0;
    }
    WithoutEcho(const WithoutEcho&) = delete;
    WithoutEcho& operator=(const WithoutEcho&) = delete;
    ~WithoutEcho()
    {
        if (m_changed) {
            ::tcsetattr(m_terminal, TCSAFLUSH, &m_before);
        }
    }

private:
    int m_terminal;
    termios m_before{};
    bool m_changed;
};

} // namespace

TerminalAsker::TerminalAsker()
    : m_cancelled(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
}

void TerminalAsker::cancel()
{
    ring(m_cancelled.get());
}

std::optional<std::string> TerminalAsker::ask(const std::string& text, bool echo)
{
    const Descriptor terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
    if (!terminal) {
        return std::nullopt;
    }
    const WithoutEcho quiet(terminal.get(), echo);
    write_all(terminal.get(), clipped(sanitised(text), k_longest_shown));
    std::string answer;
    answer.reserve(k_longest_answer);
    std::array<pollfd, 2> ready{{{terminal.get(), POLLIN, 0}, {m_cancelled.get(), POLLIN, 0}}};
    char c = '\0';
    while (c != '\n' && answer.size() < k_longest_answer) {
        if (::poll(ready.data(), ready.size(), -1) < 0) {
            continue; // a signal
        }
        if (ready[1].revents != 0 || ::read(terminal.get(), &c, 1) <= 0) {
            ::explicit_bzero(answer.data(), answer.size());
            write_all(terminal.get(), "\n");
            return std::nullopt;
        }
        if (c != '\n') {
            answer += c;
        }
    }
    if (!echo) {
        write_all(terminal.get(), "\n");
    }
    return answer;
}

QuestionBox::QuestionBox()
    : m_bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
}

QuestionBox::~QuestionBox()
{
    wipe(m_answer);
}

std::optional<std::string> QuestionBox::ask(const std::string& text, bool)
{
    std::unique_lock lock(m_mutex);
    if (m_cancelled) {
        return std::nullopt;
    }
    m_question = Question{text.substr(0, k_longest_question), true};
    m_is_asked = true;
    ring(m_bell.get());
    m_changed.wait(lock, [this] { return m_cancelled || m_answer; });
    m_is_asked = false;
    m_question.reset();
    return std::exchange(m_answer, std::nullopt);
}

void QuestionBox::cancel()
{
    const std::lock_guard lock(m_mutex);
    m_cancelled = true;
    m_changed.notify_all();
}

std::optional<Question> QuestionBox::next()
{
    std::uint64_t rings = 0;
    (void)!::read(m_bell.get(), &rings, sizeof rings);
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_question, std::nullopt);
}

bool QuestionBox::is_asked() const
{
    const std::lock_guard lock(m_mutex);
    return m_is_asked;
}

void QuestionBox::answer(std::string_view text)
{
    const std::lock_guard lock(m_mutex);
    if (m_is_asked) {
        wipe(m_answer);
        m_answer.emplace().reserve(k_longest_answer); // not within the object, whose copies stay
        *m_answer += text;
        m_changed.notify_all();
    }
}

} // namespace gpuq::remote
