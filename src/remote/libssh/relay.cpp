// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/relay.h"

#include "io/local_socket.h"
#include "remote/channel.h"
#include "remote/libssh/thread.h"

#include <algorithm>
#include <array>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

constexpr std::size_t k_full = 1 << 20; ///< bytes for the socket beyond which the host must wait
constexpr std::size_t k_piece = 32 << 10;

class Relay {
public:
    Relay(const Libssh& ssh, LoggedIn through, Descriptor socket)
        : m_ssh(ssh)
        , m_through(std::move(through))
        , m_socket(std::move(socket))
    {
        set_nonblocking(m_socket.get());
        m_callbacks.size = sizeof m_callbacks;
        m_callbacks.userdata = this;
        m_callbacks.channel_data_function = &Relay::on_data;
        m_callbacks.channel_eof_function = &Relay::on_end;
        m_callbacks.channel_close_function = &Relay::on_end;
    }

    void run()
    {
        const ssh_session session = m_through.session.get();
        m_ssh.set_blocking(session, 0);
        set_nonblocking(m_ssh.get_fd(session));
        m_ssh.set_channel_callbacks(m_through.channel, &m_callbacks);
        const ssh_event event = m_ssh.event_new();
        if (event != nullptr && m_ssh.event_add_session(event, session) == SSH_OK) {
            while (!m_over) {
                round(event);
            }
            m_ssh.event_remove_session(event, session);
        }
        if (event != nullptr) {
            m_ssh.event_free(event);
        }
        m_ssh.disconnect(session);
    }

private:
    bool has_unsent() const
    {
        return (m_ssh.get_status(m_through.session.get()) & SSH_WRITE_PENDING) != 0;
    }

    void round(ssh_event event)
    {
        const bool takes = m_outgoing.empty() && may_write();
        const auto to_host = static_cast<short>((m_incoming.size() < k_full ? POLLIN : 0) |
                                                (has_unsent() ? POLLOUT : 0));
        const auto to_socket = static_cast<short>((takes && !m_ended ? POLLIN : 0) |
                                                  (m_incoming.empty() ? 0 : POLLOUT));
        std::array<pollfd, 2> wait{
            {{m_ssh.get_fd(m_through.session.get()), to_host, 0}, {m_socket.get(), to_socket, 0}}};
        if (::poll(wait.data(), wait.size(), -1) < 0) {
            return;
        }
        if (wait[0].revents != 0) {
            m_ended = m_ssh.event_dopoll(event, 0) == SSH_ERROR || m_ended;
        }
        if ((wait[1].revents & POLLOUT) != 0) {
            const ssize_t count =
                ::send(m_socket.get(), m_incoming.data(), m_incoming.size(), MSG_NOSIGNAL);
            m_incoming.erase(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        }
        if ((wait[1].revents & POLLIN) != 0) {
            read_from_socket();
        }
        pass_to_host();
        const int status = m_ssh.get_status(m_through.session.get());
        m_ended = m_ended || (status & (SSH_CLOSED | SSH_CLOSED_ERROR)) != 0;
        m_over = m_over || (m_ended && m_incoming.empty()) ||
                 (wait[1].revents & (POLLHUP | POLLERR)) != 0;
    }

    bool may_write() const
    {
        return !has_unsent() && m_ssh.channel_window_size(m_through.channel) > 0;
    }

    void read_from_socket()
    {
        std::array<char, k_piece> bytes;
        const ssize_t count = ::read(m_socket.get(), bytes.data(), bytes.size());
        m_over = m_over || count == 0;
        m_outgoing.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }

    /// While keys are exchanged, libssh takes nothing.
    void pass_to_host()
    {
        if (m_outgoing.empty() || m_ended || !may_write()) {
            return;
        }
        const std::size_t most =
            std::min<std::size_t>(m_outgoing.size(), m_ssh.channel_window_size(m_through.channel));
        const int count = m_ssh.channel_write(m_through.channel, m_outgoing.data(),
                                              static_cast<std::uint32_t>(most));
        m_ended = m_ended || (count < 0 && count != SSH_AGAIN);
        m_outgoing.erase(0, static_cast<std::size_t>(std::max(count, 0)));
    }

    static int on_data(ssh_session, ssh_channel, void* data, std::uint32_t size, int is_stderr,
                       void* self)
    {
        if (is_stderr == 0) {
            static_cast<Relay*>(self)->m_incoming.append(static_cast<const char*>(data), size);
        }
        return static_cast<int>(size);
    }
    static void on_end(ssh_session, ssh_channel, void* self)
    {
        static_cast<Relay*>(self)->m_ended = true;
    }

    const Libssh& m_ssh;
    LoggedIn m_through;
    Descriptor m_socket;
    ssh_channel_callbacks_struct m_callbacks{};
    std::string m_incoming; ///< for the socket
    std::string m_outgoing; ///< for the host
    bool m_ended = false;   ///< of the channel or the session
    bool m_over = false;
};

} // namespace

Result<Relayed> relay(const Libssh& ssh, LoggedIn through)
{
    auto done = std::make_shared<Descriptor>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!*done) {
        return fail(Error::Kind::io, "no descriptors are left");
    }
    TRY_ASSIGN(auto ends, make_socket_pair());
    auto work = std::make_shared<Relay>(ssh, std::move(through), std::move(ends[1]));
    TRY(start_thread([work = std::move(work), done]() mutable {
        work->run();
        work.reset();
        const std::uint64_t one = 1;
        (void)!::write(done->get(), &one, sizeof one);
    }));
    return Relayed{std::move(ends[0]), std::move(done)};
}

} // namespace gpuq::remote
