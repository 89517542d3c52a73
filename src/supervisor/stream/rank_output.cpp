// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/rank_output.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr std::array k_names = {"out.log", "err.log"};
constexpr std::size_t k_read = 64 << 10;

} // namespace

Result<RankOutput> RankOutput::open(int link_directory, int rank)
{
    RankOutput output;
    for (std::size_t i = 0; i < k_names.size(); ++i) {
        TRY_ASSIGN(Pipe pipe, make_pipe());
        Stream& stream = output.m_streams[i];
        stream.from = std::move(pipe.read);
        stream.program_side = std::move(pipe.write);
        stream.log.reset(::openat(link_directory, fmt::format("{}.{}", k_names[i], rank).c_str(),
                                  O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    }
    return output;
}

std::array<int, 2> RankOutput::program_side() const
{
    return {m_streams[0].program_side.get(), m_streams[1].program_side.get()};
}

void RankOutput::close_program_side()
{
    for (Stream& stream : m_streams) {
        stream.program_side.reset();
    }
}

std::array<pollfd, 2> RankOutput::polled() const
{
    return {pollfd{m_streams[0].from.get(), POLLIN, 0}, pollfd{m_streams[1].from.get(), POLLIN, 0}};
}

void RankOutput::pass(const std::array<pollfd, 2>& ready)
{
    for (std::size_t i = 0; i < m_streams.size(); ++i) {
        Stream& stream = m_streams[i];
        if (!stream.from || ready[i].revents == 0) {
            continue;
        }
        char bytes[k_read];
        const ssize_t size = ::read(stream.from.get(), bytes, sizeof bytes);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size <= 0) {
            stream.from.reset();
            continue;
        }
        const std::string_view text(bytes, static_cast<std::size_t>(size));
        [[maybe_unused]] const ssize_t kept =
            ::pwrite(stream.log.get(), text.data(), text.size(), static_cast<off_t>(stream.size));
        stream.size += text.size();
        write_all(i == 0 ? STDOUT_FILENO : STDERR_FILENO, text);
    }
}

} // namespace gpuq::supervisor
