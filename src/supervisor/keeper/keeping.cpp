// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/keeper/keeping.h"

#include "credentials/keeping.h"
#include "log/log.h"
#include "runs/credentials.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/base/external.h"
#include "supervisor/base/job_signals.h"
#include "supervisor/base/keytab.h"
#include "supervisor/base/link_files.h"
#include "supervisor/keeper/afs.h"
#include "supervisor/keeper/link_credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using credentials::Attempt;
using credentials::Keeping;
using credentials::Source;
using credentials::Ticket;
using credentials::Trouble;

constexpr int k_nice = 10;
constexpr const char* k_renewing = "renewing";
/// A delivered ticket that lasts longer in the end, kept alive alongside the current one until that
/// has reached its limit.
constexpr const char* k_spare = "spare";
/// A new ticket from a login must reach the run within ten seconds: this interval plus disk delays.
constexpr auto k_between_queries = 3s;
/// Retry delay after a failure.
constexpr auto k_between_tokens = 30s;
constexpr auto k_longest_wait = 1s;
constexpr std::size_t k_longest_line = 500; ///< a line is written to the pipe completely or not at
                                            ///< all
/// While a child process runs, because its pipe may end before the process does.
constexpr auto k_short_wait = 20ms;

/// Modification time of a file; 0: it does not exist.
std::int64_t changed_at(const std::string& path)
{
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0
               ? facts.st_mtim.tv_sec * std::int64_t{1'000'000'000} + facts.st_mtim.tv_nsec
               : 0;
}

/// The loop of `gpuq-supervisor keep`. Each round takes a delivered token, collects the result of a
/// finished kinit, checks the run's store and the keytab (every three seconds), lets
/// credentials::step decide whether to start kinit, and reports changes. Only one kinit runs at a
/// time.
class Keeper {
public:
    Keeper(SecretFiles& files, Clock& clock, const Options& options, CredentialPlan plan,
           const Run& run)
        : m_files(files)
        , m_clock(clock)
        , m_plan(std::move(plan))
        , m_place(cache_place(m_plan, run, options))
        , m_token_place(token_place(m_plan, run, options))
        , m_next_link(run.request.chain.has_value())
        , m_jitter(credentials::jitter_of(options.key.text()))
        , m_kinit(kinit_of_node())
        , m_afs{.aklog = aklog_of(m_plan)}
    {
    }

    void run()
    {
        while (!wait()) {
            round();
        }
        m_renewal.reset(); // kills kinit, then its file is removed
        (void)m_files.remove(m_place.directory, k_renewing);
    }

private:
    using Steady = std::chrono::steady_clock;

    /// True if the run has ended.
    bool wait()
    {
        pollfd wait[] = {{k_keep_lifeline, POLLIN, 0},
                         {m_renewal ? m_renewal->fd() : -1, POLLIN, 0}};
        const auto time =
            std::chrono::milliseconds(m_renewal || m_afs.running ? k_short_wait : until_due());
        const int ready = ::poll(wait, 2, static_cast<int>(time.count()));
        return ready > 0 && wait[0].revents != 0;
    }

    std::chrono::milliseconds until_due()
    {
        if (is_permanent(m_keeping.trouble) || !m_keeping.ticket || m_plan.principal.empty()) {
            return k_longest_wait;
        }
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(m_keeping.next - m_clock.now());
        return std::clamp<std::chrono::milliseconds>(left, 1ms, k_longest_wait);
    }

    void round()
    {
        if (m_plan.token && Steady::now() >= m_token_at) {
            m_token_at = Steady::now() + k_between_queries;
            take_token();
        }
        if (!m_plan.principal.empty()) {
            update_ticket();
        }
        report();
    }

    void update_ticket()
    {
        credentials::Observed observed;
        if (m_renewal) {
            if (auto ended = m_renewal->try_finish()) {
                m_renewal.reset();
                Attempt attempt = conclude(*ended);
                if (!std::exchange(m_of_delivered, false)) {
                    observed.attempt = std::move(attempt);
                } else if (is_permanent(attempt.trouble)) {
                    (void)m_files.remove(m_plan.directory, k_delivered); // of no use any more
                    (void)m_files.remove(m_place.directory, k_spare);
                }
            }
        }
        if (Steady::now() >= m_check_at && !m_renewal) {
            m_check_at = Steady::now() + k_between_queries;
            take_delivered();
            check_keytab();
            keep_for_next_link_again();
        }
        observed.ticket = in_cache();
        observed.busy = m_renewal.has_value();
        observed.has_keytab = has_keytab(observed.ticket);
        auto [keeping, attempt] =
            credentials::step(std::move(m_keeping), observed, m_clock.now(), m_jitter);
        m_keeping = std::move(keeping);
        if (attempt) {
            begin(*attempt);
        }
        update_tokens();
    }

    /// A delivered token is newer than the current one: the client that delivered it has compared
    /// them.
    void take_token()
    {
        auto stored = m_files.read(m_plan.directory, k_token);
        const bool elsewhere = m_token_place.directory != m_plan.directory;
        auto own = elsewhere ? m_files.read(m_token_place.directory, m_token_place.name) : stored;
        if (elsewhere && stored && (!own || *own != *stored) &&
            m_files.write(m_token_place.directory, m_token_place.name, *stored)) {
            own = *stored;
        }
        if (elsewhere && stored && own && *own == *stored && !m_next_link) {
            (void)m_files.remove(m_plan.directory, k_token);
        }
        m_token = own ? std::optional(credentials::token_facts(*own)) : std::nullopt;
        const auto written = m_files.written_at(m_token_place.directory, m_token_place.name);
        m_token_got = written ? std::optional(*written) : std::nullopt;
        for (auto* bytes : {&stored, &own}) {
            if (*bytes) {
                ::explicit_bzero((*bytes)->data(), (*bytes)->size());
            }
        }
    }

    /// AFS tokens are renewed whenever the ticket is.
    void update_tokens()
    {
        if (m_afs.running) {
            if (auto ended = m_afs.running->try_finish()) {
                m_afs.running.reset();
                m_afs.trouble = tokens_trouble(m_afs.aklog, *ended);
                m_afs.next = ended->status == 0 ? Steady::time_point::max()
                                                : Steady::now() + k_between_tokens;
            }
        } else if (!m_afs.aklog.empty() && Steady::now() >= m_afs.next) {
            m_afs.running = External::start(
                {{m_afs.aklog},
                 in_english(fmt::format("FILE:{}/{}", m_place.directory, m_place.name))});
        }
    }

    /// Reads the cache in every round: a program may have logged in on its own.
    std::optional<Ticket> in_cache()
    {
        auto cache = m_files.read(m_place.directory, m_place.name);
        const auto ticket = cache ? credentials::ticket_in(*cache) : Result<Ticket>(cache.error());
        if (cache) {
            ::explicit_bzero(cache->data(), cache->size());
        }
        m_forwardable = ticket ? ticket->forwardable : m_forwardable;
        return ticket ? std::optional(*ticket) : std::nullopt;
    }

    void begin(Source source)
    {
        m_source = source;
        const auto prepared = source == Source::renewal
                                  ? copy_cache()
                                  : m_files.remove(m_place.directory, k_renewing);
        if (!prepared || m_kinit.empty()) {
            return fail_to_begin(prepared ? k_no_kinit : prepared.error().text);
        }
        start_kinit(source);
        if (!m_renewal) {
            fail_to_begin("can't start kinit on this node");
        }
    }

    void start_kinit(Source source)
    {
        const std::string copy = fmt::format("FILE:{}/{}", m_place.directory, k_renewing);
        m_renewal = External::start(
            {source == Source::renewal ? std::vector<std::string>{m_kinit, "-R", "-c", copy}
                                       : login_arguments(m_kinit, m_plan, copy, m_forwardable),
             in_english(copy),
             m_keeping.ticket ? credentials::attempt_limit(*m_keeping.ticket, m_clock.now()) : 5s});
    }

    /// The delivered ticket lasts longer in the end but expires sooner: it is renewed before it
    /// replaces the current ticket.
    void renew_delivered(const std::string& bytes, const Ticket& ticket)
    {
        if (m_tried == ticket && Steady::now() < m_delivered_at) {
            return;
        }
        put_off(ticket);
        if (m_files.write(m_place.directory, k_renewing, bytes)) {
            m_source = Source::renewal;
            start_kinit(m_source);
            m_of_delivered = m_renewal.has_value();
        }
    }

    /// A ticket that should not replace the current one yet is renewed after half of its remaining
    /// lifetime.
    void put_off(const Ticket& ticket)
    {
        m_tried = ticket;
        m_delivered_at = Steady::now() + (ticket.end - m_clock.now()) / 2;
    }

    Result<void> copy_cache()
    {
        TRY_ASSIGN(std::string cache, m_files.read(m_place.directory, m_place.name));
        const auto written = m_files.write(m_place.directory, k_renewing, cache);
        ::explicit_bzero(cache.data(), cache.size());
        return written;
    }

    void fail_to_begin(const std::string& message)
    {
        const credentials::Observed observed{m_keeping.ticket,
                                             Attempt{Trouble::unreachable, message, m_source},
                                             false, has_keytab(m_keeping.ticket)};
        m_keeping =
            credentials::step(std::move(m_keeping), observed, m_clock.now(), m_jitter).keeping;
    }

    /// A program may have logged in as another principal, which the keytab does not belong to.
    bool has_keytab(const std::optional<Ticket>& ticket) const
    {
        return !m_plan.keytab.empty() && (!ticket || ticket->principal == m_plan.principal);
    }

    /// A rejected key is tried again once the keytab file has changed.
    void check_keytab()
    {
        if (!is_of_keytab(m_keeping.keytab)) {
            m_keytab_changed = m_plan.keytab.empty() ? 0 : changed_at(m_plan.keytab);
        } else if (const auto changed = changed_at(m_plan.keytab); changed != m_keytab_changed) {
            m_keytab_changed = changed;
            m_keeping.keytab = Trouble::unreachable; // still a problem until the keytab has given a
                                                     // ticket
            m_keeping.message = "the keytab has changed; trying the new one";
            m_keeping.next = m_clock.now();
        }
    }

    Attempt conclude(const External::Ended& ended)
    {
        Attempt attempt;
        attempt.source = m_source;
        if (!ended.in_time) {
            attempt.trouble = Trouble::unreachable;
            attempt.message = "the KDC has not answered in time";
        } else if (ended.status != 0) {
            attempt.message = one_line(ended.message);
            attempt.trouble = credentials::trouble_in(attempt.message, m_source);
        } else if (const auto moved = take_renewed(); !moved) {
            attempt.trouble = Trouble::unreachable;
            attempt.message = moved.error().text;
        }
        (void)m_files.remove(m_place.directory, k_renewing);
        return attempt;
    }

    /// A ticket is only replaced by a better one.
    Result<void> take_renewed()
    {
        TRY_ASSIGN(std::string bytes, m_files.read(m_place.directory, k_renewing));
        TRY_ASSIGN(const Ticket renewed, credentials::ticket_in(bytes));
        const auto current = in_cache();
        const bool is_lost = !current && m_source == Source::renewal;
        if (is_lost || renewed.principal != (current ? current->principal : m_plan.principal)) {
            return {};
        }
        if (m_of_delivered && current && !takes_over(renewed, *current, m_clock.now())) {
            put_off(renewed);
            return m_files.move(m_place.directory, k_renewing, k_spare);
        }
        if (!m_of_delivered && current && renewed.end <= current->end) {
            return {};
        }
        TRY(m_files.move(m_place.directory, k_renewing, m_place.name));
        m_afs.next = Steady::now();
        keep_for_next_link(bytes);
        ::explicit_bzero(bytes.data(), bytes.size());
        return {};
    }

    void keep_for_next_link(const std::string& bytes)
    {
        if (!m_next_link) {
            return;
        }
        const auto written = m_files.write(m_plan.directory, k_renewed, bytes);
        m_store_trouble = written ? "" : "the next link's: " + written.error().text;
        m_store_at = Steady::now() + k_between_tokens;
    }

    /// Retries the write: a full disk may have free space again.
    void keep_for_next_link_again()
    {
        if (m_store_trouble.empty() || Steady::now() < m_store_at) {
            return;
        }
        auto cache = m_files.read(m_place.directory, m_place.name);
        if (cache) {
            keep_for_next_link(*cache);
            ::explicit_bzero(cache->data(), cache->size());
        }
    }

    /// The better of the delivered ticket and the spare, which is its renewed copy.
    std::pair<std::string, Ticket> best_delivered()
    {
        std::pair<std::string, Ticket> best;
        for (const auto& [directory, name] :
             {std::pair(m_place.directory, k_spare), std::pair(m_plan.directory, k_delivered)}) {
            auto bytes = m_files.read(directory, name);
            const auto ticket =
                bytes ? credentials::ticket_in(*bytes) : Result<Ticket>(bytes.error());
            if (ticket && (best.first.empty() ||
                           credentials::is_better(*ticket, best.second, m_clock.now()))) {
                best.first.swap(*bytes);
                best.second = *ticket;
            }
            if (bytes) {
                ::explicit_bzero(bytes->data(), bytes->size());
            }
        }
        return best;
    }

    /// Takes a delivered ticket that is better than the current one.
    void take_delivered()
    {
        auto [bytes, ticket] = best_delivered();
        if (bytes.empty()) {
            return;
        }
        const auto current = in_cache();
        const bool better = ticket.principal == m_plan.principal && ticket.end > m_clock.now() &&
                            (!current || is_better(ticket, *current, m_clock.now()));
        const bool is_renewed_first =
            better && current && ticket.end < current->end && !m_kinit.empty();
        if (is_renewed_first) {
            renew_delivered(bytes, ticket);
        }
        const bool taken =
            better && !is_renewed_first && m_files.write(m_place.directory, m_place.name, bytes);
        ::explicit_bzero(bytes.data(), bytes.size());
        m_afs.next = taken ? Steady::now() : m_afs.next;
        if (taken || !better) {
            (void)m_files.remove(m_place.directory, k_spare);
        }
        if (!m_next_link && (taken || !better)) {
            (void)m_files.remove(m_plan.directory, k_delivered);
        }
    }

    void report()
    {
        CredentialState state;
        state.ticket = m_keeping.ticket;
        state.trouble = m_keeping.reported_trouble(has_keytab(m_keeping.ticket));
        state.message = !m_keeping.message.empty() ? m_keeping.message
                        : !m_afs.trouble.empty()   ? m_afs.trouble
                                                   : m_store_trouble;
        state.has_afs = !m_afs.aklog.empty();
        state.renewals = m_keeping.renewals;
        state.token = m_token;
        state.token_got = m_token_got;
        if (state.ticket && !is_permanent(state.trouble)) {
            state.next = m_keeping.next;
        }
        if (m_reported == state && m_is_written) {
            return;
        }
        report_to_supervisor(state);
        m_reported = state;
        state.at = m_clock.now();
        const std::string part = fmt::format(".{}-part", k_credential_plan);
        const Descriptor file(::openat(k_keep_directory, part.c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                                       0600));
        // A full disk may have space later.
        m_is_written =
            file && write_all(file.get(), to_json(state)) &&
            ::renameat(k_keep_directory, part.c_str(), k_keep_directory, k_credential_plan) == 0;
    }

    /// Sends a line for the journal when a problem appears or is solved. An attempt that keeps
    /// failing is reported once.
    void report_to_supervisor(const CredentialState& state)
    {
        const Trouble before = m_reported ? m_reported->trouble : Trouble::none;
        const bool is_well = state.trouble == Trouble::none && state.message.empty();
        const bool was_well =
            !m_reported || (before == Trouble::none && m_reported->message.empty());
        if (state.trouble == before && is_well == was_well) {
            return;
        }
        std::string line = is_well
                               ? std::string("its Kerberos ticket is renewed again")
                               : "its Kerberos ticket: " + describe(state.trouble, state.message);
        log::write(is_well ? log::Level::info : log::Level::warning, log::Part::tickets, "{}",
                   line);
        line.resize(std::min(line.size(), k_longest_line));
        // If the pipe is full, the supervisor hangs, and the line is dropped.
        (void)!::write(k_keep_news, (line + "\n").data(), line.size() + 1);
    }

    SecretFiles& m_files;
    Clock& m_clock;
    CredentialPlan m_plan;
    CachePlace m_place;
    CachePlace m_token_place;
    std::optional<credentials::Token> m_token;
    std::optional<Time> m_token_got;
    Steady::time_point m_token_at;
    bool m_next_link;
    double m_jitter;
    std::string m_kinit;
    struct AfsTokens {
        std::string aklog; ///< its program; empty: no tokens are needed
        std::optional<External> running;
        Steady::time_point next = Steady::time_point::max();
        std::string trouble;
    };
    AfsTokens m_afs;
    std::string m_store_trouble;
    Steady::time_point m_store_at;
    Keeping m_keeping;
    std::optional<External> m_renewal;
    Source m_source = Source::renewal; ///< source of the attempt in progress
    bool m_of_delivered = false;       ///< the attempt renews the delivered ticket, not the current
                                       ///< one
    std::optional<Ticket> m_tried;     ///< the delivered ticket that was renewed last
    Steady::time_point m_delivered_at; ///< when to try it again
    bool m_forwardable = false;        ///< whether the last ticket was
    std::int64_t m_keytab_changed = 0;
    Steady::time_point m_check_at;
    std::optional<CredentialState> m_reported;
    bool m_is_written = false; ///< m_reported is in the run's directory
};

} // namespace

void keep_tickets(SecretFiles& files, Clock& clock, const Options& options)
{
    heed_no_job_signals();
    ::prctl(PR_SET_NAME, "gpuq-keep");
    ::prctl(PR_SET_DUMPABLE, 0);
    ::mallopt(M_ARENA_MAX, 1);
    ::setpriority(PRIO_PROCESS, 0, k_nice);
    const auto directory = RunDirectory::open(options.state_dir, options.key);
    const auto run = directory ? directory->read_run() : Result<Run>(directory.error());
    const auto text = directory ? directory->credential_plan() : std::nullopt;
    const auto plan = text ? credential_plan_from_json(*text)
                           : Result<CredentialPlan>(fail(Error::Kind::missing, ""));
    if (run && plan) {
        Keeper(files, clock, options, *plan, *run).run();
    }
    ::_exit(0);
}

} // namespace gpuq::supervisor
