// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/log_tail.h"

#include "core/layout.h"
#include "runs/evidence.h"

#include <algorithm>
#include <utility>

namespace gpuq {

LogTail::LogTail(Store& store, RunKey key, Stream stream)
    : m_store(store)
    , m_key(std::move(key))
    , m_stream(stream)
{
}

Result<std::optional<LogTail::News>> LogTail::next()
{
    News news;
    news.link = newest_link(m_store, m_key);
    const std::string path = layout::log(m_key, news.link, m_stream);
    const auto size = m_store.size(path);
    if (!size && size.error().kind != Error::Kind::missing) {
        return size.error();
    }
    const std::uint64_t end = size ? *size : 0;
    news.anew = m_link != news.link || end < m_at || end - m_at > k_window;
    m_link = news.link;
    if (news.anew) {
        m_at = end - std::min(end, k_window);
        news.skipped = m_at;
    }
    if (end > m_at) {
        TRY_ASSIGN(news.bytes, m_store.read_at(path, m_at, static_cast<std::size_t>(end - m_at)));
        m_at += news.bytes.size();
    }
    if (news.skipped > 0) { // not in the middle of a line
        const std::size_t line = news.bytes.find('\n');
        news.bytes.erase(0, line == std::string::npos ? 0 : line + 1);
    }
    return news.anew || !news.bytes.empty() ? std::optional(std::move(news)) : std::nullopt;
}

} // namespace gpuq
