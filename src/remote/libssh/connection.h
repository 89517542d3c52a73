// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "remote/channel.h"
#include "remote/libssh/login.h"

#include <memory>
#include <optional>
#include <span>
#include <string>

namespace gpuq::remote {

/// A command on another host, by libssh in this process. A thread of its own logs in; then the
/// session belongs to the thread of the event loop.
class LibsshConnection : public Link {
public:
    /// Starts the thread. `errors`: receives the command's stderr; nothing blocks on it. `io`.
    static Result<std::shared_ptr<LibsshConnection>>
    begin(const Libssh& ssh, SshLogin::Request request, std::string command, Descriptor errors);
    ~LibsshConnection() override;
    LibsshConnection(const LibsshConnection&) = delete;
    LibsshConnection& operator=(const LibsshConnection&) = delete;

    int input() const override;
    int output() const override;
    bool has_unsent() const override;
    ssize_t read(std::span<char> buffer) override;
    ssize_t write(std::span<const iovec> parts) override;

    /// The asker of the login's request; null when the login is over.
    Asker* asker() const;
    /// Ends the connection: sends the unsent bytes and waits for the command's end, for this long.
    void end(int milliseconds);
    /// Why the login has failed; null if it has not.
    const LoginFailure* failure() const { return m_failure ? &*m_failure : nullptr; }
    /// Of the command; nullopt: the connection ended before it was known.
    std::optional<int> exit_status() const { return m_exit_status; }

private:
    struct Task; ///< shared with the thread, which may outlive this object
    LibsshConnection(const Libssh& ssh, std::shared_ptr<Task> task, std::string command,
                     Descriptor errors);

    bool is_open() const { return m_session && !m_ended; }
    void take_session();
    void start_command();
    void request_command();
    void pump();
    std::size_t write_part(const char* bytes, std::size_t size);
    void close();

    static int on_data(ssh_session, ssh_channel, void* data, std::uint32_t size, int is_stderr,
                       void* self);
    static void on_end(ssh_session, ssh_channel, void* self);
    static void on_exit_status(ssh_session, ssh_channel, int status, void* self);

    const Libssh& m_ssh;
    std::shared_ptr<Task> m_task;
    std::string m_command;
    Descriptor m_errors;
    std::optional<LoginFailure> m_failure;
    SshSession m_session;
    ssh_channel m_channel = nullptr;
    ssh_event m_event = nullptr;
    ssh_channel_callbacks_struct m_callbacks{};
    bool m_is_requested = false; ///< the command, without a response so far
    std::string m_incoming;      ///< the first m_read bytes have been read
    std::size_t m_read = 0;
    bool m_ended = false; ///< no more data will arrive
    std::optional<int> m_exit_status;
};

} // namespace gpuq::remote
