// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/ssh_messages.h"

#include "remote/channel.h"
#include "remote/peer_data.h"

#include <algorithm>
#include <array>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

constexpr std::size_t k_most = 64 << 10; ///< of the newest, which contain the reason of the end

} // namespace

SshMessages::SshMessages(EventLoop& loop, std::function<bool()> is_shown,
                         std::function<void(std::string_view line)> show)
    : m_is_shown(std::move(is_shown))
    , m_show(std::move(show))
{
    loop.add([this] { return EventLoop::to_read(m_descriptor.get()); }, [this] { read(); });
}

void SshMessages::begin(Descriptor descriptor)
{
    m_text.clear();
    m_line.clear();
    m_descriptor = std::move(descriptor);
    if (m_descriptor) {
        set_nonblocking(m_descriptor.get());
    }
}

void SshMessages::read()
{
    std::array<char, 4096> buffer;
    ssize_t count = 0;
    while (m_descriptor && (count = ::read(m_descriptor.get(), buffer.data(), buffer.size())) > 0) {
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
        m_text += bytes;
        if (m_text.size() > 2 * k_most) {
            m_text.erase(0, m_text.size() - k_most);
        }
        if (m_is_shown()) {
            show_lines(bytes);
        }
    }
    if (count == 0) {
        m_descriptor.reset();
    }
}

void SshMessages::show_lines(std::string_view bytes)
{
    m_line += bytes;
    for (std::size_t end = 0; (end = m_line.find('\n')) != std::string::npos;) {
        if (++m_lines <= k_most_lines) {
            m_show(std::string_view(m_line).substr(0, end));
        }
        m_line.erase(0, end + 1);
    }
    m_line.resize(std::min(m_line.size(), k_most));
}

} // namespace gpuq::remote
