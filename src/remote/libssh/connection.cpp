// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/connection.h"

#include "remote/libssh/thread.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

/// Two threads, one after the other: the login's thread owns the session until its result is in
/// Task, then the event loop does. If this object is destroyed before, the login is cancelled, and
/// its thread ends by itself, at the latest when a name server or a KDC has answered.
///
/// Bytes that have arrived are in m_incoming, put there by on_data() within pump(); libssh keeps
/// none. So the socket tells when there is more to read, and input() is Task::done, which is always
/// readable, while m_incoming has bytes or the end was not reported.
namespace gpuq::remote {
namespace {

constexpr std::size_t k_most_at_once = 64 << 10; ///< bytes per read() and write()
constexpr int k_to_cancel_ms = 300;
/// Logins that were cancelled and have not ended yet, since a name server or a KDC does not answer.
constexpr int k_most_logins = 8;

std::atomic<int>& logins()
{
    static std::atomic<int> number = 0;
    return number;
}

bool is_readable(int descriptor, int milliseconds)
{
    pollfd wait{descriptor, POLLIN, 0};
    return ::poll(&wait, 1, milliseconds) > 0;
}

} // namespace

struct LibsshConnection::Task {
    Task(const Libssh& ssh, SshLogin::Request request)
        : login(ssh, std::move(request))
        , done(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
    {
    }
    bool is_done() const { return is_readable(done.get(), 0); }

    SshLogin login;
    std::optional<std::variant<LoggedIn, LoginFailure>> result; ///< valid when done
    Descriptor done;                                            ///< readable: the thread is over
};

Result<std::shared_ptr<LibsshConnection>> LibsshConnection::begin(const Libssh& ssh,
                                                                  SshLogin::Request request,
                                                                  std::string command,
                                                                  Descriptor errors)
{
    if (logins() >= k_most_logins) {
        return fail(Error::Kind::busy, "earlier logins still wait for a name server or a KDC");
    }
    auto task = std::make_shared<Task>(ssh, std::move(request));
    TRY(start_thread([task] {
        ++logins();
        task->result = task->login.run();
        --logins();
        const std::uint64_t one = 1;
        (void)!::write(task->done.get(), &one, sizeof one);
    }));
    return std::shared_ptr<LibsshConnection>(
        new LibsshConnection(ssh, std::move(task), std::move(command), std::move(errors)));
}

LibsshConnection::LibsshConnection(const Libssh& ssh, std::shared_ptr<Task> task,
                                   std::string command, Descriptor errors)
    : m_ssh(ssh)
    , m_task(std::move(task))
    , m_command(std::move(command))
    , m_errors(std::move(errors))
{
    m_callbacks.size = sizeof m_callbacks;
    m_callbacks.userdata = this;
    m_callbacks.channel_data_function = &LibsshConnection::on_data;
    m_callbacks.channel_eof_function = &LibsshConnection::on_end;
    m_callbacks.channel_close_function = &LibsshConnection::on_end;
    m_callbacks.channel_exit_status_function = &LibsshConnection::on_exit_status;
}

LibsshConnection::~LibsshConnection()
{
    end(0);
}

Asker* LibsshConnection::asker() const
{
    return m_session || m_failure ? nullptr : m_task->login.asker();
}

int LibsshConnection::on_data(ssh_session, ssh_channel, void* data, std::uint32_t size,
                              int is_stderr, void* self)
{
    auto& connection = *static_cast<LibsshConnection*>(self);
    if (is_stderr != 0) {
        (void)!::write(connection.m_errors.get(), data, size);
    } else {
        connection.m_incoming.append(static_cast<const char*>(data), size);
    }
    return static_cast<int>(size);
}

void LibsshConnection::on_end(ssh_session, ssh_channel, void* self)
{
    static_cast<LibsshConnection*>(self)->m_ended = true;
}

void LibsshConnection::on_exit_status(ssh_session, ssh_channel, int status, void* self)
{
    static_cast<LibsshConnection*>(self)->m_exit_status = status;
}

/// Takes the result of the login, if there is one.
void LibsshConnection::take_session()
{
    if (m_ended || m_session || !m_task->is_done()) {
        return;
    }
    auto result = *std::exchange(m_task->result, std::nullopt);
    if (auto* const failure = std::get_if<LoginFailure>(&result)) {
        m_failure = std::move(*failure);
        m_ended = true;
        return;
    }
    auto& logged_in = std::get<LoggedIn>(result);
    m_session = std::move(logged_in.session);
    m_channel = logged_in.channel;
    start_command();
}

void LibsshConnection::start_command()
{
    const ssh_session session = m_session.get();
    m_ssh.set_blocking(session, 0);
    // libssh has made the socket blocking, and would wait for a peer that does not read.
    set_nonblocking(m_ssh.get_fd(session));
    m_ssh.set_channel_callbacks(m_channel, &m_callbacks);
    m_event = m_ssh.event_new();
    m_ended = m_event == nullptr || m_ssh.event_add_session(m_event, session) != SSH_OK;
    m_is_requested = !m_ended;
    request_command();
}

/// Sends the request, or evaluates the response: the command's first output may come with it.
void LibsshConnection::request_command()
{
    if (m_is_requested) {
        const int result = m_ssh.channel_request_exec(m_channel, m_command.c_str());
        m_is_requested = result == SSH_AGAIN;
        m_ended = m_ended || result == SSH_ERROR;
    }
}

/// Processes the bytes that have arrived, and sends the unsent ones, without blocking.
void LibsshConnection::pump()
{
    const int result = m_ssh.event_dopoll(m_event, 0);
    const int status = m_ssh.get_status(m_session.get());
    m_ended = m_ended || result == SSH_ERROR || (status & (SSH_CLOSED | SSH_CLOSED_ERROR)) != 0;
    request_command();
}

int LibsshConnection::input() const
{
    const bool at_once = !is_open() || m_read < m_incoming.size();
    return at_once ? m_task->done.get() : m_ssh.get_fd(m_session.get());
}

int LibsshConnection::output() const
{
    const bool may_write = is_open() && (has_unsent() || m_ssh.channel_window_size(m_channel) > 0);
    return may_write ? m_ssh.get_fd(m_session.get()) : -1;
}

bool LibsshConnection::has_unsent() const
{
    return is_open() && (m_ssh.get_status(m_session.get()) & SSH_WRITE_PENDING) != 0;
}

ssize_t LibsshConnection::read(std::span<char> buffer)
{
    take_session();
    if (m_read == m_incoming.size()) {
        m_incoming.clear();
        m_read = 0;
    }
    // A round of libssh reads little.
    for (std::size_t before = 0; is_open() && m_incoming.size() < buffer.size();) {
        before = m_incoming.size();
        pump();
        if (m_incoming.size() == before) {
            break;
        }
    }
    const std::size_t count = std::min(buffer.size(), m_incoming.size() - m_read);
    m_incoming.copy(buffer.data(), count, m_read);
    m_read += count;
    if (count == 0 && !m_ended) {
        errno = EAGAIN;
        return -1;
    }
    return static_cast<ssize_t>(count);
}

/// Returns the number of bytes that libssh has taken.
std::size_t LibsshConnection::write_part(const char* bytes, std::size_t size)
{
    const std::size_t most =
        std::min<std::size_t>({size, m_ssh.channel_window_size(m_channel), k_most_at_once});
    if (most == 0) {
        return 0;
    }
    const int count = m_ssh.channel_write(m_channel, bytes, static_cast<std::uint32_t>(most));
    m_ended = m_ended || (count < 0 && count != SSH_AGAIN);
    return static_cast<std::size_t>(std::max(count, 0));
}

ssize_t LibsshConnection::write(std::span<const iovec> parts)
{
    if (has_unsent()) {
        pump();
    }
    if (m_ended) {
        errno = EPIPE;
        return -1;
    }
    std::size_t wanted = 0, written = 0;
    for (const iovec& part : parts) {
        wanted += part.iov_len;
    }
    if (is_open() && !has_unsent() && wanted > 0) {
        if (wanted <= k_most_at_once) { // in one packet
            std::array<char, k_most_at_once> together;
            std::size_t size = 0;
            for (const iovec& part : parts) {
                if (part.iov_len > 0) { // an empty part may have no address
                    std::memcpy(together.data() + size, part.iov_base, part.iov_len);
                    size += part.iov_len;
                }
            }
            written = write_part(together.data(), size);
        } else {
            const auto first = std::find_if(parts.begin(), parts.end(),
                                            [](const iovec& part) { return part.iov_len > 0; });
            written = write_part(static_cast<const char*>(first->iov_base), first->iov_len);
        }
    }
    if (written == 0 && (wanted > 0 || has_unsent())) {
        errno = m_ended ? EPIPE : EAGAIN;
        return -1;
    }
    return static_cast<ssize_t>(written);
}

void LibsshConnection::end(int milliseconds)
{
    if (!m_session && !m_failure) {
        m_task->login.cancel();
        (void)is_readable(m_task->done.get(), k_to_cancel_ms); // it restores the terminal
        m_ended = true;
        return;
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (m_session && !m_exit_status && m_ssh.channel_is_closed(m_channel) == 0) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        const int status = m_ssh.get_status(m_session.get());
        if (left.count() <= 0 || (status & (SSH_CLOSED | SSH_CLOSED_ERROR)) != 0) {
            break;
        }
        pollfd wait{m_ssh.get_fd(m_session.get()),
                    static_cast<short>(POLLIN | (has_unsent() ? POLLOUT : 0)), 0};
        if (::poll(&wait, 1, static_cast<int>(left.count())) > 0 &&
            m_ssh.event_dopoll(m_event, 0) == SSH_ERROR) {
            break;
        }
        m_incoming.clear();
        m_read = 0;
    }
    close();
}

void LibsshConnection::close()
{
    if (!m_session) {
        if (m_failure) { // of a host behind a jump host, whose thread may still use libssh
            m_task->login.wait_for_relays(k_to_cancel_ms);
        }
        return;
    }
    m_ended = true;
    m_errors.reset();
    if (m_event != nullptr) {
        m_ssh.event_remove_session(m_event, m_session.get());
        m_ssh.event_free(std::exchange(m_event, nullptr));
    }
    m_ssh.disconnect(m_session.get());
    m_session.reset();
    m_channel = nullptr;
    m_task->login.wait_for_relays(k_to_cancel_ms);
}

} // namespace gpuq::remote
