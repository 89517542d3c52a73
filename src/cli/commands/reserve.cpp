// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/caller.h"
#include "cli/policy_ops/file.h"
#include "cli/policy_ops/in_force.h"
#include "cli/policy_ops/reservation_plan.h"
#include "cli/queries/site_context.h"
#include "cli/render/reservation_text.h"
#include "core/number.h"
#include "core/strings.h"
#include "core/walltime.h"
#include "policy/reader.h"
#include "policy/submission.h"
#include "ports/accounting.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "report/ending_text.h"
#include "report/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <unistd.h>

// `gpuq reserve`. Slurm lets only its operators make reservations. The rules of the policy are
// checked here, for the user who calls: that is $SUDO_USER if an operator's account runs gpuq for
// others by sudo (man gpuq-reserve), which is the only way for users who are no operators.

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "from", "TIME", "start: now, 14:00, 2026-12-07T13:00, 2h (from now)"},
    Option{0, "for", "DURATION", "length: 90m, 2h"},
    Option{0, "users", "USER,...", "the users who may use the GPUs"},
    Option{0, "gpus", "N", "number of GPUs, or MODEL:N"},
    Option{0, "name", "NAME", "name of the reservation; default: its start"},
    Option{0, "cancel", "NAME", "remove a reservation"},
    Option{0, "end-jobs", "", "with --cancel: also if jobs run in it, which end"},
};

constexpr std::size_t k_longest_name = 40;
constexpr std::size_t k_most_users = 500;

bool is_reservation_name(std::string_view text)
{
    return policy::is_user_name(text) && text.size() <= k_longest_name &&
           text.find('.') == std::string_view::npos;
}

/// `1207-1300`.
std::string name_of(Time start)
{
    const std::time_t seconds =
        std::chrono::floor<std::chrono::seconds>(start).time_since_epoch().count();
    std::tm local{};
    ::localtime_r(&seconds, &local);
    return fmt::format("{:02}{:02}-{:02}{:02}", local.tm_mon + 1, local.tm_mday, local.tm_hour,
                       local.tm_min);
}

Result<std::vector<std::string>> users_in(const std::string& text)
{
    std::vector<std::string> users;
    for (const std::string_view name : split(text, ",")) {
        if (!policy::is_user_name(name)) {
            return fail(Error::Kind::usage, fmt::format("--users: '{}' is not a user name", name));
        }
        if (std::find(users.begin(), users.end(), name) == users.end()) {
            users.emplace_back(name);
        }
    }
    if (users.size() > k_most_users) {
        return fail(Error::Kind::usage, fmt::format("--users: at most {}", k_most_users));
    }
    return users;
}

Result<std::string> needed(const Options& options, std::string_view name)
{
    if (const auto value = options.value(name)) {
        return *value;
    }
    return fail(Error::Kind::usage,
                fmt::format("reserve needs --{}: gpuq reserve --from 14:00 --for 2h --users "
                            "ada,ben --gpus 4",
                            name));
}

Result<AskedReservation> asked_in(const Options& options, const std::string& maker, Time now)
{
    AskedReservation asked;
    TRY_ASSIGN(const std::string from, needed(options, "from"));
    TRY_ASSIGN(const std::string length, needed(options, "for"));
    TRY_ASSIGN(const std::string users, needed(options, "users"));
    TRY_ASSIGN(const std::string gpus, needed(options, "gpus"));
    TRY_ASSIGN(asked.start, parse_start(from, now));
    TRY_ASSIGN(asked.duration, parse_walltime(length));
    TRY_ASSIGN(asked.users, users_in(users));
    TRY_ASSIGN(const auto counts, policy::parse_gpu_counts(gpus));
    if (counts.size() != 1) {
        return fail(Error::Kind::usage, fmt::format("--gpus: '{}' is not N or MODEL:N", gpus));
    }
    asked.gpus = counts.front().count;
    asked.model = counts.front().model;
    asked.name = {maker, options.value("name").value_or(name_of(asked.start))};
    if (!is_reservation_name(asked.name.name)) {
        return fail(Error::Kind::usage,
                    fmt::format("--name '{}': use letters, digits, - and _, at most {}",
                                asked.name.name, k_longest_name));
    }
    return asked;
}

Result<std::vector<std::string>> accounts_of(Services& services, const std::string& user)
{
    TRY_ASSIGN(Accounting* const accounting, services.accounting());
    TRY_ASSIGN(const auto grants, accounting->grants(user));
    std::vector<std::string> accounts;
    for (const AccountGrants& one : grants) {
        accounts.push_back(one.account);
    }
    return accounts;
}

struct Found {
    Inventory inventory;
    std::vector<ReservedGpus> reserved;
};

Result<Found> query(Cluster& cluster)
{
    Found found;
    TRY_ASSIGN(found.inventory, cluster.inventory());
    TRY_ASSIGN(const auto reservations, cluster.reservations());
    found.reserved = reserved_gpus(reservations, found.inventory.nodes);
    return found;
}

const ReservedGpus* named(const std::vector<ReservedGpus>& reserved, const std::string& name)
{
    const auto found = std::find_if(reserved.begin(), reserved.end(), [&](const ReservedGpus& one) {
        return one.reservation.name == name;
    });
    return found == reserved.end() ? nullptr : &*found;
}

/// Slurm has chosen the nodes.
Result<int> print_made(Invocation& invocation, Cluster& cluster, const ReservationSpec& spec,
                       const ReservationName& name, Time now)
{
    TRY_ASSIGN(const Found found, query(cluster));
    const ReservedGpus* const made = named(found.reserved, spec.name);
    if (invocation.globals.json) {
        const auto list = made != nullptr ? std::vector{*made} : std::vector<ReservedGpus>{};
        TRY(print_text(report::json_document(reservation_document(list, now))));
        return 0;
    }
    if (!invocation.globals.quiet) {
        print_message(made != nullptr
                          ? reservation_line(*made, now)
                          : fmt::format("reservation {} is made, but not shown", name.name));
        print_message(fmt::format("to remove it: gpuq reserve --cancel {}", name.name));
    }
    return 0;
}

Error explained(const Error& error, const ReservationSpec& spec, Time now)
{
    if (error.kind != Error::Kind::busy) {
        return error;
    }
    return fail(Error::Kind::denied,
                fmt::format("Slurm finds no {} of partition {} free from {} to {}: jobs may run "
                            "until then, or the nodes are reserved (gpuq reserve, gpuq free "
                            "--next)",
                            counted(static_cast<std::uint64_t>(spec.nodes), "node"), spec.partition,
                            clock_text(spec.start, now),
                            clock_text(spec.start + spec.duration, now)));
}

Result<int> reserve(Invocation& invocation)
{
    Services& services = invocation.services;
    const Time now = services.clock().now();
    TRY_ASSIGN(const Caller caller, caller_of(services));
    TRY_ASSIGN(AskedReservation asked, asked_in(invocation.options, caller.name, now));
    const auto policy = policy_in_force(services);
    if (!policy) {
        const auto loaded = load_valid_policy(services, std::nullopt);
        if (!loaded && loaded.error().kind == Error::Kind::usage) {
            return fail(Error::Kind::denied, "the policy has errors, and nobody can reserve GPUs "
                                             "until they are corrected:\n" +
                                                 loaded.error().text);
        }
        return fail(Error::Kind::denied, "no policy is in force that lets users reserve GPUs (man "
                                         "gpuq-policy, reserve)");
    }
    if (depends_on_accounts(*policy, caller.name)) {
        TRY_ASSIGN(asked.accounts, accounts_of(services, caller.name));
    }
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(const Found found, query(*cluster));
    TRY_ASSIGN(const ReservationSpec spec,
               plan_reservation(*policy, asked, found.inventory, found.reserved, now));
    if (const auto done = cluster->reserve(spec); !done) {
        return explained(done.error(), spec, now);
    }
    return print_made(invocation, *cluster, spec, asked.name, now);
}

Result<int> list(Invocation& invocation)
{
    TRY_ASSIGN(Cluster* const cluster, invocation.services.cluster());
    TRY_ASSIGN(const Found found, query(*cluster));
    const Time now = invocation.services.clock().now();
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(reservation_document(found.reserved, now))));
        return 0;
    }
    if (found.reserved.empty() && !invocation.globals.no_header) {
        TRY(print_line("no GPU is reserved"));
        return 0;
    }
    TRY(print_table(reservation_table(found.reserved, now), invocation.globals,
                    invocation.services));
    return 0;
}

/// A reservation made by gpuq, named NAME or USER:NAME; the caller's own takes precedence.
Result<ReservationName> find(const std::vector<Reservation>& reservations, const std::string& text,
                             const std::string& caller)
{
    std::vector<ReservationName> found;
    for (const Reservation& one : reservations) {
        const auto name = parse_reservation_name(one.name);
        if (!name && one.name == text) {
            return fail(Error::Kind::denied,
                        fmt::format("reservation {} was not made by gpuq reserve: an operator "
                                    "changes it (policy, scontrol)",
                                    text));
        }
        if (name && (name->name == text || name->maker + ":" + name->name == text)) {
            found.push_back(*name);
        }
    }
    if (found.empty()) {
        return fail(Error::Kind::missing,
                    fmt::format("no reservation {}; gpuq reserve lists them", text));
    }
    const auto own = std::find_if(found.begin(), found.end(),
                                  [&](const ReservationName& one) { return one.maker == caller; });
    if (own == found.end() && found.size() > 1) {
        return fail(Error::Kind::usage, fmt::format("{} users have a reservation {}: give USER:{}",
                                                    found.size(), text, text));
    }
    return own == found.end() ? found.front() : *own;
}

Result<int> cancel(Invocation& invocation, const std::string& text)
{
    Services& services = invocation.services;
    TRY_ASSIGN(const Caller caller, caller_of(services));
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(const auto reservations, cluster->reservations());
    TRY_ASSIGN(const ReservationName name, find(reservations, text, caller.name));
    if (caller.by_sudo && name.maker != caller.name) {
        return fail(Error::Kind::denied, fmt::format("reservation {} was made by {}: only {} and "
                                                     "operators can remove it",
                                                     name.name, name.maker, name.maker));
    }
    std::string_view result = "is removed";
    auto done = cluster->remove_reservation(to_text(name));
    if (!done && done.error().kind == Error::Kind::busy) {
        if (!invocation.options.has("end-jobs")) {
            return fail(Error::Kind::denied,
                        fmt::format("jobs run in reservation {}, and would end with it: add "
                                    "--end-jobs",
                                    name.name));
        }
        done = cluster->end_reservation(to_text(name));
        result = "has ended; its jobs end within a minute";
    }
    TRY(std::move(done));
    print_note(invocation.globals.quiet, fmt::format("reservation {} {}", name.name, result));
    return invocation.globals.json ? list(invocation) : 0;
}

Result<int> run(Invocation& invocation)
{
    const Options& options = invocation.options;
    if (!invocation.arguments.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("reserve: unexpected argument '{}'", invocation.arguments.front()));
    }
    const bool makes = std::any_of(k_options.begin(), k_options.begin() + 5,
                                   [&](const Option& one) { return options.has(one.name); });
    const auto cancelled = options.value("cancel");
    if (makes && (cancelled || options.has("end-jobs"))) {
        return fail(Error::Kind::usage,
                    "--cancel removes a reservation, and takes only --end-jobs");
    }
    if (options.has("end-jobs") && !cancelled) {
        return fail(Error::Kind::usage, "--end-jobs goes with --cancel");
    }
    return cancelled ? cancel(invocation, *cancelled)
           : makes   ? reserve(invocation)
                     : list(invocation);
}

} // namespace

const Verb k_reserve_verb{
    "reserve", "gpuq reserve [--from TIME --for DURATION --users USER,... --gpus N]",
    "reserve GPUs for a class, if the policy allows it; list reservations", run, k_options};

} // namespace gpuq::cli
