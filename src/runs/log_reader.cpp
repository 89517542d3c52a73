// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/log_reader.h"

#include "runs/evidence.h"

#include <utility>

namespace gpuq {

LogReader::LogReader(Store& store, const RunKey& key)
    : m_store(store)
    , m_key(key)
    , m_log(std::in_place, store, key, m_link)
{
}

Result<log::Item> LogReader::next(Writer writer, LinkLog::Steady now)
{
    while (true) {
        const bool is_newest = m_link >= m_newest;
        TRY_ASSIGN(log::Item item, m_log->next(is_newest ? writer : Writer::gone, now));
        const bool is_idle =
            std::holds_alternative<log::Wait>(item) || std::holds_alternative<log::End>(item);
        if (!is_idle) {
            return item;
        }
        if (is_newest) {
            m_newest = current_link(m_store, m_key);
            if (m_link >= m_newest) {
                return item;
            }
        } else if (std::holds_alternative<log::Wait>(item)) {
            return item;
        } else {
            ++m_link.value;
            const std::uint64_t to_pass = m_log->to_pass();
            m_log.emplace(m_store, m_key, m_link);
            m_log->pass_over(to_pass);
        }
    }
}

} // namespace gpuq
