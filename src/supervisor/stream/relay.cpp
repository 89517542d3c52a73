// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/relay.h"

#include "core/exit_status.h"
#include "io/local_socket.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/base/helper.h"
#include "supervisor/base/process_tree.h"
#include "supervisor/stream/server.h"
#include "wire/frame.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_pause = 20ms;
/// Time from the end of a run to the end of its job.
constexpr auto k_slurm_patience = 15s;
constexpr auto k_kill_patience = 5s;

Result<Descriptor> connect_soon(const Options& options)
{
    const auto until = std::chrono::steady_clock::now() + options.patience.connecting;
    while (true) {
        auto socket = connect_to_first(socket_names(options));
        if (socket || std::chrono::steady_clock::now() >= until) {
            return socket;
        }
        ::poll(nullptr, 0, k_pause.count());
    }
}

int no_supervisor(const Error& error)
{
    write_all(STDERR_FILENO, fmt::format("gpuq: no supervisor here: {}\n", error.text));
    return k_status_no_supervisor;
}

struct Watched {
    std::optional<int> status; ///< from the Ended frame; nullopt if the connection broke before it
    bool let_in = false;
};

Watched wait_for_the_end(int socket)
{
    write_all(socket, wire::encode(wire::Attach{wire::k_version, wire::Role::guard, 0, 0}));
    wire::Decoder decoder;
    Watched watched;
    char piece[4096];
    ssize_t size = 0;
    while ((size = ::read(socket, piece, sizeof piece)) > 0 || (size < 0 && errno == EINTR)) {
        decoder.feed(std::string_view(piece, size > 0 ? static_cast<std::size_t>(size) : 0));
        auto frame = decoder.next();
        for (; frame && *frame; frame = decoder.next()) {
            if (const auto* ended = std::get_if<wire::Ended>(&**frame)) {
                watched.status = ended->ending.status;
            } else if (std::holds_alternative<wire::Hello>(**frame)) {
                // From now on the client may let go of this step.
                watched.let_in = true;
                write_all(STDOUT_FILENO, wire::encode(**frame).append(wire::k_flush));
            }
        }
    }
    return watched;
}

} // namespace

int relay(const Options& options)
{
    ::signal(SIGPIPE, SIG_IGN);
    // Slurm sends it to all processes of a job that ends, but the last output and the cause still
    // have to pass through. The supervisor ends in time, and this process with it.
    ::signal(SIGTERM, SIG_IGN);
    const auto socket = connect_soon(options);
    if (!socket) {
        return no_supervisor(socket.error());
    }
    // slurmstepd reads 4 KiB at a time, and should not have to wake the supervisor for each piece.
    ::fcntl(STDOUT_FILENO, F_SETPIPE_SZ, k_largest_pipe);
    const bool given = give_streams(socket->get(), STDIN_FILENO, STDOUT_FILENO);
    const int why_not = given ? 0 : errno;
    // Data on the socket is the reason why the supervisor does not accept the streams; it may have
    // closed the connection before they were sent.
    char piece[4096];
    ssize_t size = 0;
    bool reported = false;
    while ((size = ::read(socket->get(), piece, sizeof piece)) > 0 ||
           (size < 0 && errno == EINTR)) {
        reported = reported || size > 0;
        write_all(STDOUT_FILENO,
                  std::string_view(piece, size > 0 ? static_cast<std::size_t>(size) : 0));
    }
    if (!given && !reported) {
        return no_supervisor(fail(Error::Kind::io, error_text(why_not)));
    }
    ::_exit(static_cast<int>(ExitStatus::success));
}

void report(const Options& options, const std::string& text)
{
    if (const auto socket = connect_to_first(socket_names(options))) {
        write_all(socket->get(), wire::encode(wire::Report{text}));
    }
}

int guard(Services& services, const Options& options)
{
    ::signal(SIGPIPE, SIG_IGN);
    const auto socket = connect_soon(options);
    if (!socket) {
        return no_supervisor(socket.error());
    }
    const auto [status, let_in] = wait_for_the_end(socket->get());
    if (!let_in) {
        return no_supervisor(
            fail(Error::Kind::busy, "the listening supervisor did not accept the guard"));
    }
    if (status) {
        // The guardian ends the job, and Slurm then this process; only if that fails is it done
        // here.
        ::poll(nullptr, 0, std::chrono::milliseconds(k_slurm_patience).count());
    } else {
        // Without cgroups, Slurm finds processes by their parents, which are dead.
        kill_by_variable("GPUQ_RUN_ID=" + options.key.text(), k_kill_patience);
    }
    if (options.job) {
        const int ended = status.value_or(static_cast<int>(ExitStatus::lost));
        complete_for_ever(completion_by_fork(services, *options.job, ended)); // no threads here
    }
    return static_cast<int>(ExitStatus::success);
}

} // namespace gpuq::supervisor
