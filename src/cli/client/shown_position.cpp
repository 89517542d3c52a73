// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/shown_position.h"

#include "core/layout.h"
#include "ports/clock.h"
#include "ports/store.h"

#include <algorithm>
#include <chrono>
#include <poll.h>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto k_record_again = 10s;
constexpr auto k_mark_again = 200ms;
constexpr auto k_on_its_way = 600ms;
constexpr auto k_poll_mark = 10ms;

} // namespace

ShownPosition::ShownPosition(EventLoop& loop, Services& services, const Run& run,
                             const std::optional<Shown>& begin, std::function<Shown()> printed)
    : m_services(services)
    , m_run(run)
    , m_is_recorded(begin && !run.request.pty)
    , m_printed(std::move(printed))
    , m_certain(begin ? Shown{begin->out, begin->err, m_printed().link} : Shown{})
    , m_mark_timer(loop, [this] { mark(); })
    , m_record_timer(loop, [this] { record(); })
{
    m_mark_timer.start_in(0s);
    m_record_timer.repeat(k_record_again);
}

void ShownPosition::on_printed()
{
    if (!m_mark_timer.is_started()) {
        m_mark_timer.start_in(k_mark_again);
    }
}

void ShownPosition::mark()
{
    if (!m_services.is_served()) {
        m_certain = m_printed();
        return;
    }
    if (m_mark && m_services.marks_shown() >= m_mark->number) {
        m_certain = m_mark->shown;
        m_mark.reset();
    }
    if (!m_mark && m_printed() != m_certain) {
        m_mark = Mark{m_services.mark_output(), m_printed()};
    }
    if (m_mark) {
        m_mark_timer.start_in(k_mark_again);
    }
}

void ShownPosition::wait_until_shown()
{
    if (!m_is_recorded) {
        return;
    }
    mark();
    const auto until = EventLoop::Clock::now() + k_on_its_way;
    while (m_mark && EventLoop::Clock::now() < until) {
        ::poll(nullptr, 0, k_poll_mark.count());
        mark();
    }
}

void ShownPosition::record()
{
    const Shown shown = m_certain;
    if (!m_is_recorded || shown == m_recorded) {
        return;
    }
    const auto store = m_services.store();
    if (!store) {
        return;
    }
    const LinkNumber link = m_printed().link;
    const auto text = (*store)->read(layout::shown_json(m_run.key));
    const auto before = text ? shown_from_json(*text) : Result<Shown>(Shown{});
    if (before && before->link > link) {
        return;
    }
    const bool of_this_link = before && before->link == link;
    const Shown known = of_this_link ? *before : Shown{0, 0, link};
    const Shown most{std::max(shown.out, known.out), std::max(shown.err, known.err), link};
    if ((*store)->write(layout::shown_json(m_run.key), to_json(most))) {
        m_recorded = shown;
    }
}

} // namespace gpuq::cli
