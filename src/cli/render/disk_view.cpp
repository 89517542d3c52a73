// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/disk_view.h"

#include "ports/accounting.h"

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto k_ask_again = 10s;

} // namespace

DiskView::DiskView(Services& services, const Run& run, LinkNumber link, Printer& printer, What what)
    : m_services(services)
    , m_run(run)
    , m_link(link)
    , m_printer(printer)
    , m_what(what)
{
}

std::optional<wire::Ended> DiskView::poll(Store& store)
{
    if (!m_ending) {
        find_end(store);
    }
    const bool all_read = m_what == What::end || print(store);
    return all_read ? m_ending : std::nullopt;
}

void DiskView::find_end(Store& store)
{
    const bool may_ask = Clock::now() >= m_ask_at;
    if (may_ask) {
        m_ask_at = Clock::now() + k_ask_again;
    }
    const RunStatus found = status(store, may_ask ? SlurmQuery::if_needed : SlurmQuery::never);
    if (found.state == RunState::ended && found.ending) {
        m_ending = wire::Ended{*found.ending, 0, 0, found.last_lines};
    } else if (found.link > m_link) {
        Ending ending{0, Cause::lost, "", m_services.clock().now(), true};
        for (const LinkPast& link : found.links) {
            if (link.link == m_link && link.ending) {
                ending = *link.ending;
                ending.continues = true;
            }
        }
        m_ending = wire::Ended{std::move(ending), 0, 0, ""};
    }
}

RunStatus DiskView::status(Store& store, SlurmQuery query) const
{
    const StatusSources services{store, m_services.clock(), [this] { return m_services.cluster(); },
                                 [this] { return m_services.accounting(); }};
    return query_run(services, m_run.key, query);
}

/// True if the log is complete and all of it has been passed on.
bool DiskView::print(Store& store)
{
    if (!m_log) {
        m_log.emplace(store, m_run.key, m_link);
    }
    const Writer writer = m_ending ? Writer::gone : Writer::alive;
    while (!m_printer.full()) {
        const auto item = m_log->next(writer, Clock::now());
        if (!item) {
            return true; // the log can't be read: report the end nevertheless
        }
        if (const auto* output = std::get_if<log::Output>(&*item)) {
            std::uint64_t& position = m_position[static_cast<std::size_t>(output->stream)];
            m_printer.take(output->stream, position, output->bytes);
            position += output->bytes.size();
        } else if (const auto* gap = std::get_if<log::Gap>(&*item)) {
            m_position[static_cast<std::size_t>(gap->stream)] += gap->bytes;
        } else {
            return std::holds_alternative<log::End>(*item);
        }
    }
    return false;
}

} // namespace gpuq::cli
