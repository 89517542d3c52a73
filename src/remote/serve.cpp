// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/serve.h"

#include "io/local_socket.h"
#include "io/passed_descriptors.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/// Processes: sshd starts the front (class Front), which reads the first frames. If a holder
/// (holder.h) of the requested session listens on its socket, the front passes it the connection's
/// descriptors and the bytes read so far. Otherwise it forks a holder, in its own session, that
/// inherits them. In both cases the front then only waits for the holder to close the socket
/// between them, because sshd ends the connection with the front.
namespace gpuq::remote {
namespace {

constexpr int k_patience_ms = 60'000; ///< for a client that sends nothing
constexpr int k_handing_ms = 5'000;
constexpr std::size_t k_most_read = 2 * wire::k_max_payload;
constexpr int k_backlog = 16;

bool wait_for(int descriptor, short events, int milliseconds)
{
    pollfd wait{descriptor, events, 0};
    int count = 0;
    do {
        count = ::poll(&wait, 1, milliseconds);
    } while (count < 0 && errno == EINTR);
    return count > 0;
}

/// Number of bytes already read from a connection, and how many of the next bytes repeat them.
struct Sizes {
    std::uint32_t read = 0, repeated = 0;
};

/// Sends the descriptors with the sizes, and then the bytes already read.
bool hand_over(int socket, int in, int out, std::string_view read, std::size_t repeated)
{
    const Sizes sizes{static_cast<std::uint32_t>(read.size()),
                      static_cast<std::uint32_t>(repeated)};
    return send_with_descriptors(socket, {reinterpret_cast<const char*>(&sizes), sizeof sizes},
                                 {in, out}) &&
           write_all(socket, read);
}

std::optional<Handed> take_over(int listener)
{
    Handed handed;
    handed.front.reset(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!handed.front || !is_same_user(handed.front.get()) ||
        !wait_for(handed.front.get(), POLLIN, k_handing_ms)) {
        return std::nullopt;
    }
    Sizes sizes;
    std::optional<DescriptorPair> streams;
    const ssize_t count = receive_with_descriptors(
        handed.front.get(), {reinterpret_cast<char*>(&sizes), sizeof sizes}, streams);
    if (!streams || count != sizeof sizes || sizes.read > k_most_read) {
        return std::nullopt;
    }
    handed.in = std::move((*streams)[0]);
    handed.out = std::move((*streams)[1]);
    handed.repeated = sizes.repeated;
    const std::size_t size = sizes.read;
    handed.read.resize(size);
    for (std::size_t have = 0; have < size;) {
        if (!wait_for(handed.front.get(), POLLIN, k_handing_ms)) {
            return std::nullopt;
        }
        const ssize_t more = ::recv(handed.front.get(), handed.read.data() + have, size - have, 0);
        if (more <= 0) {
            return std::nullopt;
        }
        have += static_cast<std::size_t>(more);
    }
    return handed;
}

/// The process that ssh has started.
class Front {
public:
    explicit Front(const ServeOptions& options)
        : m_options(options)
        , m_in(options.in)
        , m_out(options.out)
        , m_read(options.early)
        , m_repeated(options.early.size())
    {
        m_decoder.feed(m_read);
    }

    Result<int> run()
    {
        if (!write_all(m_out.get(), frames::k_marker)) {
            return 0;
        }
        auto open = read_open();
        if (!open) {
            write_all(m_out.get(),
                      frames::encode(frames::Failure{open.error().kind, open.error().text}));
            return std::move(open).error();
        }
        const std::string name = m_options.place + "/" + open->session;
        auto session = connect_to_session(name);
        if (!session) {
            // Any other error does not mean that the session is gone: without a Hello, the client
            // tries again.
            const auto kind = session.error().kind;
            return kind == Error::Kind::missing || kind == Error::Kind::denied
                       ? begin(name)
                       : Result<int>(std::move(session).error());
        }
        if (!hand_over(session->get(), m_in.get(), m_out.get(), m_read, m_repeated)) {
            return 0;
        }
        let_streams_go();
        leave_to_child(*session);
        return stay(*std::move(session));
    }

private:
    /// Waits for a moment if the session's backlog is full.
    static Result<Descriptor> connect_to_session(const std::string& name)
    {
        constexpr int k_attempts = 10;
        constexpr int k_between_ms = 200;
        auto session = connect_to(name);
        for (int i = 1; i < k_attempts && !session && session.error().kind == Error::Kind::busy;
             ++i) {
            ::poll(nullptr, 0, k_between_ms);
            session = connect_to(name);
        }
        return session;
    }

    /// Reads the next frame. All bytes read are kept in m_read for the holder, which parses them
    /// again.
    Result<std::optional<frames::Frame>> next_frame()
    {
        std::array<char, wire::k_piece> buffer;
        while (true) {
            TRY_ASSIGN(auto frame, m_decoder.next());
            if (frame) {
                return frame;
            }
            if (m_read.size() > k_most_read) {
                return fail(Error::Kind::internal, "too much data before the session began");
            }
            if (!wait_for(m_in.get(), POLLIN, k_patience_ms)) {
                return fail(Error::Kind::unreachable, "the client does not respond");
            }
            const ssize_t count = ::read(m_in.get(), buffer.data(), buffer.size());
            if (count == 0 || (count < 0 && errno != EINTR)) {
                return std::optional<frames::Frame>();
            }
            const std::string_view bytes = without_repeated(
                {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))}, m_repeated);
            m_read += bytes;
            m_decoder.feed(bytes);
        }
    }

    Result<frames::Open> read_open()
    {
        TRY_ASSIGN(auto frame, next_frame());
        const auto* const open = frame ? std::get_if<frames::Open>(&*frame) : nullptr;
        if (open == nullptr || !frames::is_session_name(open->session)) {
            return fail(Error::Kind::internal, "expected Open first");
        }
        if (open->oldest > frames::k_version || open->version < frames::k_oldest_version) {
            return fail(Error::Kind::usage,
                        fmt::format("gpuq {} is too {} for this client", m_options.identity.version,
                                    open->oldest > frames::k_version ? "old" : "new"));
        }
        return *open;
    }

    Result<int> begin(const std::string& name)
    {
        frames::Hello hello{
            frames::k_version,   m_options.identity.version, m_options.identity.host, false, 0,
            frames::k_input_room};
        if (!write_all(m_out.get(), frames::encode(hello))) {
            return 0;
        }
        TRY_ASSIGN(auto frame, next_frame());
        if (!frame || !std::holds_alternative<frames::Start>(*frame)) {
            return 0; // the client only wanted to return to a session that is gone
        }
        auto listener = listen_at(name, k_backlog);
        if (!listener) {
            write_all(m_out.get(), frames::encode(frames::Failure{listener.error().kind,
                                                                  listener.error().text}));
            return std::move(listener).error();
        }
        TRY_ASSIGN(auto ends, make_socket_pair());
        auto& [ours, theirs] = ends;
        // `gpuq serve` has a single thread: the forked processes may do everything.
        const pid_t child = ::fork();
        if (child == 0) {
            ours.reset();
            hold(*std::move(listener), std::move(theirs));
        }
        listener->reset();
        theirs.reset();
        if (child < 0) {
            return fail(Error::Kind::io, fmt::format("fork: {}", std::strerror(errno)));
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        let_streams_go();
        return stay(std::move(ours));
    }

    /// Turns this forked process into the session's process. Does not return.
    [[noreturn]] void hold(Descriptor listener, Descriptor front)
    {
        ::setsid();
        if (::fork() != 0) {
            ::_exit(0);
        }
        (void)!::chdir("/"); // do not keep a file system busy
        for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            // Move the descriptors to hand over away from these numbers first.
            for (Descriptor* const each : {&m_in, &m_out}) {
                if (each->get() == stream) {
                    each->release();
                    each->reset(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
                }
            }
            Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
            ::dup2(null.get(), stream);
        }
        {
            Holder holder(m_options.program, m_options.identity, std::move(listener), take_over);
            holder.run({std::move(m_in), std::move(m_out), std::move(front), std::move(m_read),
                        m_repeated});
        }
        ::_exit(0);
    }

    /// Closes the connection's streams, which now belong to the session.
    void let_streams_go()
    {
        const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
        for (Descriptor* const each : {&m_in, &m_out}) {
            if (each->get() <= STDERR_FILENO) {
                ::dup2(null.get(), each->release());
            } else {
                each->reset();
            }
        }
    }

    /// In a child process: a file system that hangs must not delay the end of the connection.
    void leave_to_child(Descriptor& session)
    {
        if (::fork() == 0) {
            session.reset();
            const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
            ::dup2(null.get(), STDERR_FILENO); // sshd waits for its end of file
            ::setsid();
            m_options.came_back();
            ::_exit(0);
        }
    }

    /// Waits for the end of the connection: sshd associates it with this process.
    static Result<int> stay(Descriptor session)
    {
        std::array<char, 64> buffer;
        while (true) {
            const ssize_t count = ::read(session.get(), buffer.data(), buffer.size());
            if (count == 0 || (count < 0 && errno != EINTR)) {
                return 0;
            }
        }
    }

    const ServeOptions& m_options;
    Descriptor m_in, m_out;
    frames::Decoder m_decoder;
    std::string m_read;
    std::size_t m_repeated;
};

} // namespace

Result<int> serve(const ServeOptions& options)
{
    std::signal(SIGPIPE, SIG_IGN);
    return Front(options).run();
}

} // namespace gpuq::remote
