// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/connections.h"

#include "cli/base/config.h"
#include "core/layout.h"
#include "io/network_socket.h"
#include "log/log.h"
#include "ports/accounting.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/host.h"
#include "runs/query_status.h"
#include "runs/records/journal.h"
#include "runs/records/own_names.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <poll.h>
#include <unistd.h>
#include <utility>

// How the run becomes independent of this host: a run started by this process begins on the streams
// of the supervisor's own srun (Kind::first), whose death would end the run. After the handover
// time a second connection, m_next, is opened: the network, if the user wants that and both ends
// prove who they are within k_network_patience, else the node's socket or a relay step. Once its
// Hello arrives, it replaces m_current, the guard step is started, and the first srun is abandoned,
// that is, killed without ending its step. When the guard step is up, m_guarded is set, and the run
// needs no process on this host. From then on any connection may end and is reopened, with growing
// pauses.

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto k_handover_again = 10s;
constexpr auto k_guard_again = 10s;
constexpr auto k_longest_retry = std::chrono::seconds(15);
constexpr auto k_guard_patience = 2s;
constexpr auto k_step_patience = 5s;
constexpr auto k_step_poll = 200ms;
constexpr auto k_network_patience = 3s;

} // namespace

Connections::Connections(EventLoop& loop, Services& services, const Run& run, LinkNumber link,
                         JobId job, std::chrono::milliseconds handover,
                         std::function<std::vector<wire::Frame>()> greeting)
    : m_services(services)
    , m_run(run)
    , m_link(link)
    , m_job(job)
    , m_handover(handover)
    , m_greeting(std::move(greeting))
    , m_signals{.client = std::bit_cast<std::uint64_t>(services.random()), .waiting = {}}
    , m_handover_timer(loop, [this] { begin_handover(); })
    , m_retry_timer(loop,
                    [this] {
                        if (!m_next) {
                            open_way();
                        }
                    })
    , m_guard_timer(loop, [this] { retry_guard(); })
    , m_network_timer(loop, [this] { give_up_network("no answer"); })
{
}

void Connections::begin(std::optional<StepProcess> first)
{
    if (!first) {
        return open_way();
    }
    m_first = first;
    m_guarded = false;
    m_current.emplace(Connection::Kind::first, *first);
    m_current->limit_output();
}

void Connections::greeted()
{
    m_current->has_greeted = true;
    m_was_connected = true;
    send_signals();
}

void Connections::send_signal(int number)
{
    m_signals.waiting.push_back(number);
    m_current->send(
        wire::Signal{m_signals.client, m_signals.taken + m_signals.waiting.size(), number});
    m_current->write_some();
}

/// Repeats those that are not confirmed.
void Connections::send_signals()
{
    if (m_signals.waiting.empty()) {
        return;
    }
    std::uint64_t place = m_signals.taken;
    for (const int number : m_signals.waiting) {
        m_current->send(wire::Signal{m_signals.client, ++place, number});
    }
    m_current->write_some();
}

void Connections::signal_taken(const wire::SignalTaken& taken)
{
    while (m_signals.taken < taken.place && !m_signals.waiting.empty()) {
        m_signals.waiting.pop_front();
        ++m_signals.taken;
    }
}

void Connections::started()
{
    if (m_current->kind() == Connection::Kind::first) {
        m_handover_timer.start_in(m_handover);
    }
}

bool Connections::on_next()
{
    if (!m_next) {
        return false;
    }
    m_next->read_errors();
    if (m_next->wants_to_write() >= 0) {
        m_next->write_some();
    }
    const bool open = m_next->read_some();
    auto frame = m_next->next();
    if (m_login && (frame || !open || m_next->is_broken())) {
        if (!frame || !on_proof(*frame)) {
            give_up_network(frame ? "this is not the run's supervisor" : "the connection fails");
            return false;
        }
        frame = m_next->next();
    }
    if (frame && std::holds_alternative<wire::Hello>(*frame)) {
        finish_handover();
        return true;
    }
    if (const auto* refused = frame ? std::get_if<wire::Refused>(&*frame) : nullptr) {
        m_refused = refused->why;
    }
    if ((!open || m_next->is_broken()) && m_next->kind() == Connection::Kind::network) {
        give_up_network("the connection ended");
    } else if (!open || m_next->is_broken()) {
        m_why = m_next->errors().empty() ? m_why : m_next->errors();
        m_next.reset();
        if (m_current) {
            m_handover_timer.start_in(k_handover_again);
        } else {
            m_retry_timer.start_in(m_retry_after);
            m_retry_after = std::min(2 * m_retry_after, k_longest_retry);
        }
    }
    return false;
}

void Connections::begin_handover()
{
    m_handover_timer.stop();
    if (m_current && m_current->kind() == Connection::Kind::first && !m_next) {
        open_way();
    }
}

void Connections::finish_handover()
{
    m_network_timer.stop();
    m_current = std::exchange(m_next, std::nullopt);
    log::info(log::Part::client, "the new connection has taken over");
    greeted();
    m_retry_after = 1s;
    if (!m_guarded && !m_guard) {
        open_guard();
    }
    release_first();
}

/// Detaches the supervisor's own srun.
void Connections::release_first()
{
    const auto cluster = m_services.cluster();
    if (m_first && cluster) {
        (*cluster)->abandon(*m_first);
        m_first.reset();
    }
}

void Connections::on_guard()
{
    if (!m_guard) {
        return;
    }
    m_guard->read_errors();
    const bool open = m_guard->read_some();
    if (m_guard->next()) {
        m_guarded = true;
        if (const auto cluster = m_services.cluster()) {
            (*cluster)->abandon(m_guard->process());
        }
        m_guard.reset();
    } else if (!open) {
        m_guard.reset();
        m_guard_timer.start_in(k_guard_again);
    }
}

std::optional<Connection> Connections::open(Connection::Kind kind)
{
    const auto cluster = m_services.cluster();
    const auto store = m_services.store();
    const auto supervisor = m_services.supervisor();
    if (!cluster || !store || !supervisor) {
        return std::nullopt;
    }
    const std::string word = kind == Connection::Kind::guard ? "guard" : "relay";
    const auto process = (*cluster)->start_step(
        m_job,
        {*supervisor, word, (*store)->root(), m_run.key.text(), std::to_string(m_link.value)},
        /*with_input=*/true);
    if (!process) {
        log::warning(log::Part::client, "no {} step: {}", word, process.error().text);
        return std::nullopt;
    }
    log::info(log::Part::client, "started a {} step in job {}", word, m_job.value);
    return Connection(kind, *process);
}

void Connections::open_guard()
{
    m_guard_timer.stop();
    m_guard = open(Connection::Kind::guard);
    if (!m_guard) {
        m_guard_timer.start_in(k_guard_again);
    }
}

void Connections::retry_guard()
{
    if (m_current && !m_guarded && !m_guard) {
        open_guard();
    }
}

/// On the run's own node, no Slurm process is needed to carry the frames.
std::optional<Connection> Connections::open_direct()
{
    const auto settings = m_services.settings();
    if (!settings || settings->direct == Direct::no) {
        return std::nullopt;
    }
    const auto store = m_services.store();
    auto socket = store ? m_services.host().connect_to(
                              own_names(**store).sockets(::geteuid(), m_run.key, m_link))
                        : Result<Descriptor>(store.error());
    if (!socket) {
        m_why = socket.error().kind == Error::Kind::denied ? socket.error().text : "";
        log::debug(log::Part::client, "no socket of the run on this host: {}", socket.error().text);
        return std::nullopt;
    }
    log::info(log::Part::client, "connected to the supervisor's socket on this host");
    return std::optional<Connection>(std::in_place, Connection::Kind::direct, *std::move(socket));
}

/// The supervisor's address is in its journal, which NFS may show late. A connection that has
/// failed is not tried again in this session: a firewall stays.
std::optional<Connection> Connections::open_network()
{
    const auto settings = m_services.settings();
    const auto store = m_services.store();
    if (!settings || settings->direct != Direct::network || !store || !m_network_works ||
        !m_run.request.network) {
        return std::nullopt;
    }
    const auto journal = (*store)->read(layout::journal(m_run.key, m_link));
    std::string address;
    for (const Event& event : parse_journal(journal ? *journal : "")) {
        address = event.kind == Event::Kind::supervisor_started ? event.address.value_or("")
                                                                : std::move(address);
    }
    auto socket = address.empty() ? Result<Descriptor>(fail(Error::Kind::missing, "no address"))
                                  : begin_to_connect(address);
    if (!socket) {
        log::info(log::Part::client, "not over the network: {}", socket.error().text);
        return std::nullopt;
    }
    log::info(log::Part::client, "connecting to the supervisor at {}", address);
    m_login.emplace(own_names(**store), m_run.key, m_link, random_nonce());
    m_network_timer.start_in(k_network_patience);
    return std::optional<Connection>(std::in_place, Connection::Kind::network, *std::move(socket));
}

/// False if the frame is no proof that the other end is the supervisor: it is sent nothing then.
bool Connections::on_proof(const wire::Frame& frame)
{
    const auto* proof = std::get_if<wire::Proof>(&frame);
    const auto answer = proof == nullptr ? std::nullopt : m_login->answer(*proof);
    if (!answer) {
        return false;
    }
    log::info(log::Part::client, "the supervisor has proved that it can read the run's secret");
    m_login.reset();
    m_next->send(*answer);
    introduce_next();
    return true;
}

void Connections::give_up_network(const std::string& why)
{
    m_network_timer.stop();
    if (m_next && m_next->kind() == Connection::Kind::network) {
        log::info(log::Part::client, "not over the network: {}", why);
        m_network_works = false;
        m_login.reset();
        m_next.reset();
        open_way();
    }
}

void Connections::introduce_next()
{
    for (const wire::Frame& frame : m_greeting()) {
        m_next->send(frame);
    }
    m_next->limit_output();
    m_next->write_some();
}

void Connections::open_way()
{
    m_retry_timer.stop();
    m_next = open_network();
    if (m_next) {
        m_next->send(m_login->challenge());
        return;
    }
    m_next = open_direct();
    if (!m_next) {
        m_next = open(Connection::Kind::relay);
    }
    if (m_next) {
        introduce_next();
    } else {
        m_retry_timer.start_in(m_retry_after);
    }
}

Connections::Broken Connections::drop_current()
{
    const bool first = m_current->kind() == Connection::Kind::first;
    Broken broken{first && !m_current->has_greeted, m_current->errors()};
    log::info(log::Part::client, "the connection ended{}{}", broken.messages.empty() ? "" : ": ",
              broken.messages);
    m_current.reset();
    m_handover_timer.stop();
    if (!m_next) {
        m_retry_timer.start_in(m_retry_after);
    }
    return broken;
}

void Connections::give_up()
{
    m_next.reset();
    m_login.reset();
    m_network_timer.stop();
    m_retry_timer.stop();
}

bool Connections::secure()
{
    if (m_guarded || !m_was_connected) {
        return true;
    }
    if (!m_guard) {
        open_guard();
    }
    wait_for_guard();
    release_first();
    const bool broken = !m_current;
    return m_guarded || !broken || !step_has_died() || has_recorded_end();
}

/// Whether the step has ended with its program, which its supervisor records before.
bool Connections::has_recorded_end() const
{
    const auto store = m_services.store();
    if (!store) {
        return false;
    }
    const RunStatus status =
        query_run({**store, m_services.clock(), [this] { return m_services.cluster(); },
                   [this] { return m_services.accounting(); }},
                  m_run.key, SlurmQuery::never);
    return status.state == RunState::ended || status.link > m_link;
}

void Connections::wait_for_guard()
{
    const auto until = Clock::now() + k_guard_patience;
    while (m_guard && Clock::now() < until) {
        pollfd waits[] = {{m_guard->output(), POLLIN, 0},
                          {m_current ? m_current->output() : -1, 0, 0}};
        ::poll(waits, std::size(waits), 100);
        on_guard();
        if ((waits[1].revents & POLLHUP) != 0) {
            m_current.reset();
        }
    }
}

/// Whether the supervisor's step has ended. Polls for a while, since Slurm may not know it yet.
bool Connections::step_has_died()
{
    const auto until = Clock::now() + k_step_patience;
    while (const auto cluster = m_services.cluster()) {
        const auto there = (*cluster)->has_first_step(m_job);
        const bool died = there && !*there;
        if (died || Clock::now() >= until) {
            return died;
        }
        ::poll(nullptr, 0, k_step_poll.count());
    }
    return false;
}

} // namespace gpuq::cli
