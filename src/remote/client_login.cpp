// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/client.h"

#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <poll.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

/// Handles a lost connection to a host that requires an interactive login: a password, a second
/// factor or the passphrase of a key.
///
/// No attempt is made until the user presses Enter or something that may allow a login has changed
/// (login_means.h). Enter starts one attempt; each of its questions is shown once and its answer
/// sent once. Keys typed before the request is shown belong to the program; keys typed after it are
/// used by gpuq only, so no key meant for the program becomes an answer.
namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr Span k_check_again = 2s; ///< interval for checking login_means.h
constexpr Span k_between = 5s;     ///< minimum time between attempts without questions
constexpr Span k_pause =
    1s; ///< Enter counts only after this time without keys: otherwise it ends a line typed blindly
constexpr int k_most_questions = 10; ///< per attempt
constexpr std::size_t k_longest_shown = 300;
constexpr std::size_t k_longest_answer = 1024;
constexpr char k_backspace = '\x7f';

/// Removes the last character.
void remove_last(std::string& utf8)
{
    while (!utf8.empty()) {
        const auto byte = static_cast<unsigned char>(utf8.back());
        utf8.back() = '\0';
        utf8.pop_back();
        if ((byte & 0xc0) != 0x80) {
            return;
        }
    }
}

void wipe(std::string& text)
{
    ::explicit_bzero(text.data(), text.size());
    text.clear();
}

/// The question without trailing blanks, sanitised and truncated to a readable length.
std::string shown_question(std::string_view text)
{
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r')) {
        text.remove_suffix(1);
    }
    return clipped(sanitised(text), k_longest_shown);
}

std::string span_text(std::chrono::seconds span)
{
    return span >= 1h && span % 1h == 0s       ? fmt::format("{} h", span / 1h)
           : span >= 1min && span % 1min == 0s ? fmt::format("{} min", span / 1min)
                                               : fmt::format("{} s", span.count());
}

} // namespace

void Client::needs_user(Error error)
{
    const bool asked = m_reconnect.asks();
    m_reconnect.denied();
    if (!m_login) {
        m_login.emplace();
        m_login->answer.reserve(k_longest_answer);
        if (m_options.asks) {
            m_ui.begin_own_keys();
            take_typed();
        }
    }
    m_login->request = !asked ? "needs an interactive login"
                       : error.kind == Error::Kind::denied
                           ? "refused the login"
                           : fmt::format("could not be asked ({})", sanitised(error.text));
    m_login->error = std::move(error);
    m_login->question.reset();
    wipe(m_login->answer);
    m_login->state = m_transport.login_state();
    m_login_timer.repeat(k_check_again);
    m_login->attempt_at = std::max(m_login->attempt_at, now() + k_between);
    show_login();
}

/// Passes keys typed before the request for Enter was shown to the program, if it reads input.
void Client::take_typed()
{
    if (m_input.is_over()) {
        return drop_typed();
    }
    pollfd wait{m_options.in, POLLIN, 0};
    std::array<char, wire::k_piece> buffer;
    while (::poll(&wait, 1, 0) > 0) {
        const ssize_t count = ::read(m_options.in, buffer.data(), buffer.size());
        if (count <= 0) {
            return;
        }
        m_input.add({buffer.data(), static_cast<std::size_t>(count)});
    }
}

/// Discards keys typed before a question is shown.
void Client::drop_typed() const
{
    ::tcflush(m_options.in, TCIFLUSH);
}

void Client::show_login()
{
    const std::string run = m_following && m_following->link != 0
                                ? fmt::format(" (run {} keeps running)", m_following->job)
                                : std::string();
    if (m_login->question) {
        const std::string text = shown_question(m_login->question->text);
        return m_ui.show_request(fmt::format("{} asks: {}", m_options.host, text));
    }
    if (m_reconnect.asks()) {
        return m_ui.show_request(fmt::format("{}: logging in, Ctrl-C cancels", m_options.host));
    }
    if (m_options.asks) {
        return m_ui.show_request(fmt::format("{} {}: Enter tries again, Ctrl-C leaves{}",
                                             m_options.host, m_login->request, run));
    }
    if (!std::exchange(m_login->is_shown, true)) {
        m_ui.print_message(
            fmt::format("{} needs an interactive login, but there is no terminal: waiting "
                        "up to {} for a key agent, a ticket or a shared connection{}",
                        m_options.host, span_text(m_options.start.patience), run));
    }
}

/// Attempts a login if something that may allow one has changed; without a terminal, gives up in
/// the end.
void Client::poll_login()
{
    const Moment at = now();
    if (!m_options.asks && m_outage.begun_at &&
        at >= *m_outage.begun_at + m_options.start.patience) {
        Error error = std::move(m_login->error);
        error.text +=
            fmt::format("; no login succeeded within {}", span_text(m_options.start.patience));
        return stop(std::move(error));
    }
    // A change before attempt_at is detected then.
    if (m_reconnect.state() == ReconnectPolicy::State::needs_user && !m_connection.channel &&
        at >= m_login->attempt_at && may_let_in(m_login->state, m_transport.login_state())) {
        m_login->attempt_at = at + k_between;
        m_sharing.avoided = m_sharing.hung = false; // it may be a new shared connection
        m_reconnect.attempt(ReconnectPolicy::Asking::nobody);
    }
}

void Client::on_question()
{
    auto question = m_transport.next_question();
    if (!question) {
        if (m_login && m_login->question && !m_transport.is_asked()) { // ssh has ended
            m_login->question.reset();
            wipe(m_login->answer);
        }
        return;
    }
    if (!m_login || ++m_login->questions > k_most_questions) {
        return cancel_login();
    }
    drop_typed();
    m_login->question = std::move(question);
    wipe(m_login->answer);
    m_reconnect.question();
    show_login();
}

/// Ends the attempt but keeps waiting.
void Client::cancel_login()
{
    disconnect();
    m_reconnect.denied();
    if (m_login) {
        m_login->question.reset();
        m_login->request = "needs an interactive login";
        wipe(m_login->answer);
        m_login->state = m_transport.login_state();
        show_login();
    }
}

void Client::on_login_keys()
{
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(m_options.in, buffer.data(), buffer.size());
    if (count <= 0) { // at end of file, a signal follows
        m_login->has_keys = count < 0;
        return;
    }
    std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    while (m_login && !has_stopped()) {
        auto key = m_keys.take(bytes);
        if (!key) {
            break;
        }
        on_login_key(*key);
        wipe(key->text);
        wipe(key->raw);
    }
    ::explicit_bzero(buffer.data(), buffer.size());
}

void Client::on_login_key(const KeyEvent& key)
{
    if (key.is_interrupt()) {
        return on_interrupt();
    }
    if (m_login->question) {
        return edit_answer(key);
    }
    if (key.kind == KeyEvent::Kind::report || m_reconnect.asks()) {
        return;
    }
    const Moment at = now();
    const bool alone = at - m_login->other_key_at >= k_pause;
    if (!key.is_enter()) {
        m_login->other_key_at = at;
    } else if (alone) {
        m_login->questions = 0;
        m_reconnect.attempt(ReconnectPolicy::Asking::user);
    }
}

void Client::edit_answer(const KeyEvent& key)
{
    std::string& answer = m_login->answer;
    if (key.is_enter() && m_login->question->expects_answer) {
        m_login->other_key_at = {}; // the keys so far were the answer
        m_transport.answer(answer);
        wipe(answer);
        m_login->question.reset();
        m_reconnect.answered(now());
        show_login();
    } else if (key.is(k_backspace)) {
        remove_last(answer);
    } else if (key.control && key.character == U'u') {
        wipe(answer);
    } else if (answer.size() + key.text.size() <= k_longest_answer) {
        answer += key.text;
        if (key.kind == KeyEvent::Kind::pasted && answer.ends_with('\n')) {
            answer.pop_back();
        }
    }
}

/// Called when the connection is back or the user leaves.
void Client::end_login()
{
    if (m_login) {
        m_login_timer.stop();
        wipe(m_login->answer);
        m_login.reset();
        m_ui.end_own_keys();
    }
}

} // namespace gpuq::remote
