// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/slot.h"

#include <csignal>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_between_values = 10s;           ///< between two records of a running try's metric
constexpr auto k_time_to_end = 10s;              ///< from TERM to KILL
constexpr std::size_t k_piece = 1 << 20;         ///< of a log, read at once
constexpr std::uint64_t k_most_behind = 8 << 20; ///< beyond that, a part of the log is skipped

} // namespace

void Slot::end(EventLoop::Moment now)
{
    if (!m_kill_at) {
        m_kill_at = now + k_time_to_end;
        ::kill(-m_pid, SIGTERM);
    } else if (now >= *m_kill_at) {
        ::kill(-m_pid, SIGKILL);
    }
}

void Slot::stop_early(const sweeps::EarlyStop& evidence, EventLoop::Moment term_at)
{
    m_evidence = evidence;
    m_term_at = term_at;
}

void Slot::read_log(Store& store, const std::string& path)
{
    read_pieces(store, path, 1);
}

void Slot::read_rest_of_log(Store& store, const std::string& path)
{
    read_pieces(store, path, static_cast<int>(k_most_behind / k_piece));
    m_reader.end_line();
}

void Slot::read_pieces(Store& store, const std::string& path, int most)
{
    const auto size = store.size(path);
    if (size && *size > m_offset + k_most_behind) {
        m_offset = *size - k_most_behind;
        m_reader.end_line();
    }
    for (int piece = 0; piece < most; ++piece) {
        const auto bytes = store.read_at(path, m_offset, k_piece);
        if (!bytes || bytes->empty()) {
            return;
        }
        m_reader.feed(*bytes);
        m_offset += bytes->size();
    }
}

void Slot::read_event_files(const sweeps::Metric& metric, EventLoop::Moment now)
{
    if (m_event_files != nullptr && sweeps::series_of(m_reader.curves(), metric) == nullptr) {
        m_event_files->read(now);
    }
}

const telemetry::Series* Slot::curve(const sweeps::Metric& metric) const
{
    const auto* const printed = sweeps::series_of(m_reader.curves(), metric);
    return printed == nullptr && m_event_files != nullptr ? m_event_files->curve(metric) : printed;
}

sweeps::TryValues Slot::values(const sweeps::Metric& metric) const
{
    const auto* const series = curve(metric);
    return series == nullptr ? m_earlier : sweeps::values_of(*series, metric, m_earlier);
}

bool Slot::is_news(const sweeps::TryValues& values, EventLoop::Moment now)
{
    if (values == m_recorded || now < m_record_at) {
        return false;
    }
    m_recorded = values;
    m_record_at = now + k_between_values;
    return true;
}

} // namespace gpuq::supervisor
