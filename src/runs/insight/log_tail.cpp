// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/log_tail.h"

#include "core/layout.h"
#include "runs/evidence.h"

#include <algorithm>
#include <utility>

namespace gpuq {
namespace {

constexpr std::size_t k_compared = 64;

/// The newest link that has a log: the newest link of a chain may only be waiting for its turn.
LinkNumber newest_with_log(Store& store, const RunKey& key, Stream stream)
{
    for (LinkNumber link = newest_link(store, key); link > LinkNumber{1}; --link.value) {
        const auto size = store.size(layout::log(key, link, stream));
        if (size || size.error().kind != Error::Kind::missing) {
            return link;
        }
    }
    return LinkNumber{1};
}

} // namespace

LogTail::LogTail(Store& store, RunKey key, Stream stream)
    : m_store(store)
    , m_key(std::move(key))
    , m_stream(stream)
{
}

LogTail::LogTail(Store& store, std::string path)
    : m_store(store)
    , m_path(std::move(path))
{
}

Result<std::optional<LogTail::News>> LogTail::next()
{
    using Why = News::Why;
    News news;
    news.link = m_key ? newest_with_log(m_store, *m_key, m_stream) : LinkNumber{1};
    const std::string path = m_key ? layout::log(*m_key, news.link, m_stream) : m_path;
    const auto size = m_store.size(path);
    if (!size && size.error().kind != Error::Kind::missing) {
        return size.error();
    }
    const std::uint64_t end = size ? *size : 0;
    const auto before = std::exchange(m_link, news.link);
    news.anew = before != news.link || end < m_at || end - m_at > k_window;
    news.why = !before               ? Why::opened
               : before != news.link ? Why::next_link
               : end < m_at          ? Why::cut
                                     : Why::fast;
    if (!news.anew && end > 0) {
        const std::uint64_t from = m_at - m_known.size();
        TRY_ASSIGN(news.bytes, m_store.read_at(path, from, static_cast<std::size_t>(end - from)));
        news.anew = !news.bytes.starts_with(m_known);
        news.why = Why::replaced;
        news.bytes.erase(0, m_known.size());
    }
    if (news.anew) {
        m_at = news.skipped = end - std::min(end, k_window);
        m_known.clear();
        news.bytes.clear();
        if (end > 0) {
            TRY_ASSIGN(news.bytes,
                       m_store.read_at(path, m_at, static_cast<std::size_t>(end - m_at)));
        }
    }
    m_at += news.bytes.size();
    m_known += news.bytes;
    m_known.erase(0, m_known.size() - std::min(m_known.size(), k_compared));
    if (news.skipped > 0) { // do not start in the middle of a line
        const std::size_t line = news.bytes.find('\n');
        const std::size_t part = line == std::string::npos ? 0 : line + 1;
        news.bytes.erase(0, part);
        news.skipped += part;
    }
    if (news.anew && m_key) {
        m_times.emplace(m_store, *m_key, news.link, m_stream);
    }
    if (m_times) {
        news.times = m_times->next();
    }
    return news.anew || !news.bytes.empty() || !news.times.empty() ? std::optional(std::move(news))
                                                                   : std::nullopt;
}

} // namespace gpuq
