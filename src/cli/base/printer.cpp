// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/printer.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// How much one write(2) may be given without a risk of blocking after poll(2) has returned
/// POLLOUT: a pipe then has space for PIPE_BUF bytes (pipe(7)); a regular file takes everything.
std::size_t safe_size(int descriptor)
{
    struct stat status = {};
    const bool file = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    return file ? SSIZE_MAX : PIPE_BUF;
}

} // namespace

std::string_view Printer::news(Stream stream, std::uint64_t offset, std::string_view bytes) const
{
    const std::uint64_t next = wanted(stream);
    if (next != wire::k_from_now && offset < next) {
        bytes.remove_prefix(std::min<std::uint64_t>(next - offset, bytes.size()));
    }
    return bytes;
}

std::uint64_t Printer::take(Stream stream, std::uint64_t offset, std::string_view bytes)
{
    std::uint64_t& wanted = m_wanted[index(stream)];
    if (wanted == wire::k_from_now) {
        wanted = offset;
    }
    const std::uint64_t end = offset + bytes.size();
    if (end <= wanted) {
        return 0;
    }
    const std::uint64_t gap = offset > wanted ? offset - wanted : 0;
    bytes = news(stream, offset, bytes);
    wanted = end;
    m_waiting += bytes.size();
    m_pieces.push_back(Piece{stream, std::string(bytes)});
    return gap;
}

void Printer::show(std::string_view bytes)
{
    if (!bytes.empty()) {
        m_waiting += bytes.size();
        m_pieces.push_back(Piece{Stream::out, std::string(bytes)});
    }
}

std::uint64_t Printer::shown(Stream stream) const
{
    std::uint64_t offset = wanted(stream);
    for (const Piece& piece : m_pieces) {
        offset -= piece.stream == stream ? piece.bytes.size() - piece.written : 0;
    }
    return offset;
}

int Printer::write_some()
{
    Piece& piece = m_pieces.front();
    const int descriptor = m_descriptors[index(piece.stream)];
    const std::size_t size = std::min(piece.bytes.size() - piece.written, safe_size(descriptor));
    const ssize_t count = ::write(descriptor, piece.bytes.data() + piece.written, size);
    if (count < 0) {
        return errno == EINTR || errno == EAGAIN ? 0 : errno;
    }
    piece.written += static_cast<std::size_t>(count);
    m_last_byte = piece.written > 0 ? piece.bytes[piece.written - 1] : m_last_byte;
    m_waiting -= static_cast<std::size_t>(count);
    if (piece.written == piece.bytes.size()) {
        m_pieces.pop_front();
    }
    return 0;
}

} // namespace gpuq::cli
