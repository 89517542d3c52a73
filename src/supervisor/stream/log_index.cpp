// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/log_index.h"

#include "core/layout.h"
#include "runs/records/log_times.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_max_pending_order = 64 << 10;
/// Between two lines of `times`; the second one once the file is large, after some hours of output.
constexpr auto k_time_period = 1s;
constexpr auto k_seldom_time_period = 10s;
constexpr std::uint64_t k_many_times = 1 << 20;
constexpr std::size_t k_max_pending_times = 64 << 10;

std::string order_line(Stream stream, std::uint64_t size)
{
    return fmt::format("{} {}\n", stream == Stream::out ? 'o' : 'e', size);
}

/// Reduces the lines to two with the same sums; the interleaving of the streams is lost.
std::string compacted(const std::string& order)
{
    Position sums{};
    for (std::size_t from = 0; from < order.size();) {
        const std::size_t end = order.find('\n', from);
        sums[order[from] == 'o' ? 0 : 1] += std::stoull(order.substr(from + 2, end - from - 2));
        from = end + 1;
    }
    return order_line(Stream::out, sums[0]) + order_line(Stream::err, sums[1]);
}

} // namespace

void AppendedText::write(int file)
{
    const auto end = static_cast<off_t>(size);
    const ssize_t written = file < 0 ? -1 : ::pwrite(file, pending.data(), pending.size(), end);
    if (written == static_cast<ssize_t>(pending.size())) {
        size += pending.size();
        pending.clear();
    } else if (written > 0) {
        [[maybe_unused]] const int cut = ::ftruncate(file, end);
    }
}

void OrderFile::add(Stream stream, std::uint64_t size, int file)
{
    if (m_segment && *m_segment != stream) {
        m_text.pending += order_line(*m_segment, m_segment_size);
        m_segment_size = 0;
        write(file);
    }
    m_segment = stream;
    m_segment_size += size;
}

void OrderFile::write(int file)
{
    m_text.write(file);
    if (m_text.pending.size() > k_max_pending_order) {
        m_text.pending = compacted(m_text.pending);
    }
}

void TimesFile::note(const Position& written, Clock& clock, int directory)
{
    if (written == m_noted) {
        return;
    }
    m_noted = written;
    m_next = clock.steady() + (m_text.size < k_many_times ? k_time_period : k_seldom_time_period);
    if (m_text.pending.size() < k_max_pending_times) {
        m_text.pending += to_line(LogTime{clock.now(), written});
    }
    if (!m_file && directory >= 0) {
        m_file.reset(::openat(directory, layout::k_times,
                              O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        struct stat status {};
        m_text.size =
            ::fstat(m_file.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
    }
    if (directory >= 0) {
        m_text.write(m_file.get());
    }
}

} // namespace gpuq::supervisor
