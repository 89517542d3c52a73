// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/admin.h"

#include "slurm/admin_text.h"
#include "slurm/busy_nodes.h"
#include "slurm/cluster.h"
#include "slurm/command.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/list.h"
#include "slurm/rehearsal.h"
#include "slurm/sacctmgr_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>
#include <thread>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using slurm::CommandAnswer;
using slurm::QosAssociation;
using Kind = SlurmObject::Kind;
using Arguments = std::vector<std::string>;

constexpr auto k_patience = 60s;
constexpr const char* k_probe = "gpuq-policy-probe"; // policy/lua.h

/// Slurm's commands report the reason only as text.
bool means_unreachable(std::string_view arguments)
{
    constexpr std::string_view k_signs[] = {"Unable to contact", "Connection refused", "timed out",
                                            "connect failure", "Zero Bytes"};
    return std::any_of(std::begin(k_signs), std::end(k_signs), [&](std::string_view sign) {
        return arguments.find(sign) != std::string_view::npos;
    });
}

Error refusal(const Arguments& arguments, const CommandAnswer& answer)
{
    const std::string output = slurm::tidy(answer.err + answer.out);
    return fail(means_unreachable(output) ? Error::Kind::unreachable : Error::Kind::denied,
                fmt::format("`{}`: {}", fmt::join(arguments, " "), output));
}

/// The command's output; an error if it fails.
Result<std::string> query(const Arguments& arguments)
{
    TRY_ASSIGN(CommandAnswer answer, slurm::run_command(arguments, k_patience));
    if (answer.status != 0) {
        return refusal(arguments, answer);
    }
    return std::move(answer.out);
}

Result<void> order(const Arguments& arguments)
{
    TRY_ASSIGN(const std::string ignored, query(arguments));
    (void)ignored;
    return {};
}

Result<std::vector<SlurmObject>> all_qos()
{
    std::string format = "format=Name";
    for (const slurm::QosField& field : slurm::qos_fields()) {
        format += fmt::format(",{}", field.name);
    }
    TRY_ASSIGN(const std::string printed, query({"sacctmgr", "-nP", "show", "qos", format}));
    return slurm::qos_in(printed);
}

Result<std::string> shown_associations()
{
    return query({"sacctmgr", "-nP", "show", "assoc", "withrawqoslevel", "woplimits", "wopinfo",
                  slurm::association_format(), "cluster=" + slurm::cluster_name()});
}

Result<std::vector<QosAssociation>> all_associations()
{
    TRY_ASSIGN(const std::string printed, shown_associations());
    return slurm::associations_in(printed);
}

Result<std::vector<SlurmObject>> all_reservations()
{
    TRY_ASSIGN(const std::string printed, query({"scontrol", "-o", "show", "reservation"}));
    return slurm::reservations_in(printed);
}

const SlurmObject* named(const std::vector<SlurmObject>& objects, const std::string& name)
{
    const auto found = std::find_if(objects.begin(), objects.end(),
                                    [&](const SlurmObject& object) { return object.name == name; });
    return found == objects.end() ? nullptr : &*found;
}

std::string value_of(const SlurmObject& object, const std::string& field)
{
    const auto found = object.fields.find(field);
    return found == object.fields.end() ? "" : found->second;
}

std::set<std::string> names_in(const std::string& list)
{
    std::set<std::string> names;
    for (std::size_t at = 0; at < list.size();) {
        const auto end = std::min(list.find(',', at), list.size());
        names.insert(list.substr(at, end - at));
        at = end + 1;
    }
    return names;
}

Error did_not_take(const SlurmObject& object)
{
    return fail(Error::Kind::denied, fmt::format("Slurm did not set {} {} as requested",
                                                 word(object.kind), object.name));
}

Result<void> set_qos(const SlurmObject& desired)
{
    TRY_ASSIGN(const auto before, all_qos());
    SlurmObject actual{Kind::qos, desired.name, {}, 0};
    if (const SlurmObject* const found = named(before, desired.name)) {
        actual = *found;
    } else {
        TRY(order({"sacctmgr", "-i", "add", "qos", desired.name}));
    }
    const auto changes = slurm::qos_arguments(actual, desired);
    if (!changes.empty()) {
        Arguments arguments{"sacctmgr", "-i", "modify", "qos", desired.name, "set"};
        arguments.insert(arguments.end(), changes.begin(), changes.end());
        TRY(order(arguments));
    }
    TRY_ASSIGN(const auto after, all_qos());
    const SlurmObject* const now = named(after, desired.name);
    return now != nullptr && slurm::qos_arguments(*now, desired).empty() ? Result<void>()
                                                                         : did_not_take(desired);
}

/// Arguments that modify an account, a user, or `user@account`.
Arguments modify_arguments(const char* kind, const std::string& who)
{
    const auto at = who.rfind('@');
    Arguments arguments{"sacctmgr",
                        "-i",
                        "modify",
                        at == std::string::npos ? kind : "user",
                        who.substr(0, at),
                        "where",
                        "cluster=" + slurm::cluster_name()};
    if (at != std::string::npos) {
        arguments.push_back("account=" + who.substr(at + 1));
    }
    arguments.emplace_back("set");
    return arguments;
}

Result<void> give_or_take(const char* kind, const std::string& who, const std::string& qos,
                          char sign)
{
    Arguments arguments = modify_arguments(kind, who);
    arguments.push_back(fmt::format("qos{}={}", sign, qos));
    return order(arguments);
}

Result<void> move_holders(const char* kind, const std::string& qos, const std::string& actual,
                          const std::string& desired)
{
    const auto has = names_in(actual);
    const auto shall = names_in(desired);
    for (const std::string& who : shall) {
        if (!has.contains(who)) {
            TRY(give_or_take(kind, who, qos, '+'));
        }
    }
    for (const std::string& who : has) {
        if (!shall.contains(who)) {
            TRY(give_or_take(kind, who, qos, '-'));
        }
    }
    return {};
}

Result<void> set_access(const SlurmObject& desired)
{
    const auto find = [&](const std::vector<QosAssociation>& associations) {
        const auto all = slurm::accesses_in(associations);
        const SlurmObject* const found = named(all, desired.name);
        return found != nullptr ? *found : SlurmObject{Kind::access, desired.name, {}, 0};
    };
    TRY_ASSIGN(const auto before, all_associations());
    const SlurmObject actual = find(before);
    const bool open = names_in(value_of(desired, "accounts")).contains("root");
    // Accounts first, so that users who keep the QOS through an account never lose it.
    for (const char* const kind : {"account", "user"}) {
        const std::string field = std::string(kind) + "s";
        TRY(move_holders(kind, desired.name, value_of(actual, field), value_of(desired, field)));
    }
    // If all are to have it, return it also to those from which it was removed once.
    if (open) {
        TRY_ASSIGN(const auto between, all_associations());
        for (const std::string& who : names_in(value_of(find(between), "without"))) {
            TRY(give_or_take("account", who, desired.name, '+'));
        }
    }
    TRY_ASSIGN(const auto after, all_associations());
    const SlurmObject now = find(after);
    const bool same = open ? names_in(value_of(now, "accounts")).contains("root")
                           : value_of(now, "accounts") == value_of(desired, "accounts") &&
                                 value_of(now, "users") == value_of(desired, "users");
    return same ? Result<void>() : did_not_take(desired);
}

Result<void> set_share(const SlurmObject& desired)
{
    Arguments arguments = modify_arguments("account", desired.name);
    arguments.push_back("fairshare=" + value_of(desired, "fairshare"));
    TRY(order(arguments));
    TRY_ASSIGN(const auto after, all_associations());
    const auto shares = slurm::shares_in(after);
    const SlurmObject* const now = named(shares, desired.name);
    return now != nullptr && now->fields == desired.fields ? Result<void>() : did_not_take(desired);
}

Result<void> delete_reservation(const std::string& name)
{
    auto done = order({"scontrol", "delete", "reservationname=" + name});
    if (!done && done.error().text.find("in use") != std::string::npos) {
        return fail(done.error().kind,
                    fmt::format("{}: jobs run in it; apply again when they have ended, or end them "
                                "with `scancel --reservation={}`",
                                done.error().text, name));
    }
    return done;
}

Result<void> set_limit(const SlurmObject& desired)
{
    TRY_ASSIGN(const auto before, all_associations());
    // One by one: if a limit is given twice, sacctmgr uses the last one.
    for (const std::string& change :
         slurm::gpu_limit_arguments(slurm::limits_in(before), desired)) {
        Arguments arguments = modify_arguments("account", desired.name);
        arguments.push_back(change);
        TRY(order(arguments));
    }
    return {};
}

/// Appends to Slurm's message the jobs that run past the reservation's start.
Error busy(Error error, const SlurmObject& desired)
{
    const std::string start = value_of(desired, "StartTime");
    const auto printed = query(
        {"squeue", "-h", "-a", "-t", "R,S", "-w", value_of(desired, "Nodes"), "-o", "%A|%u|%N|%e"});
    if (printed) {
        error.text +=
            ": " + slurm::way_out(desired.name, start, slurm::holding_past(start, *printed));
    }
    return error;
}

/// The remaining part of a reservation in progress, because Slurm refuses a start in the distant
/// past; nullopt if it is not in progress.
std::optional<SlurmObject> rest_of(SlurmObject reservation)
{
    std::tm parts{};
    const char* const end =
        ::strptime(value_of(reservation, "StartTime").c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    parts.tm_isdst = -1;
    const std::time_t begin = end != nullptr ? std::mktime(&parts) : -1;
    const std::time_t now = std::time(nullptr);
    const std::time_t left =
        begin + 60 * std::strtol(value_of(reservation, "Duration").c_str(), nullptr, 10) - now;
    if (begin < 0 || begin > now || left <= 0) {
        return std::nullopt;
    }
    reservation.fields["StartTime"] = "now";
    reservation.fields["Duration"] = std::to_string((left + 59) / 60);
    return reservation;
}

Result<void> order_reservation(Arguments arguments, const SlurmObject& actual,
                               const SlurmObject& desired)
{
    const auto fields = slurm::reservation_arguments(actual, desired);
    arguments.insert(arguments.end(), fields.begin(), fields.end());
    return fields.empty() ? Result<void>() : order(arguments);
}

/// If Slurm refuses a reservation that began long ago, creates its remaining part.
Result<void> make_reservation(const SlurmObject& desired)
{
    const Arguments arguments{"scontrol", "create", "reservation",
                              "reservationname=" + desired.name};
    const SlurmObject none{Kind::reservation, desired.name, {}, 0};
    auto made = order_reservation(arguments, none, desired);
    const auto rest = made ? std::nullopt : rest_of(desired);
    return rest && order_reservation(arguments, none, *rest) ? Result<void>() : made;
}

/// For changes that an update can't make: moving a reservation in progress, or removing fields that
/// no policy sets. If the new one is refused, the old one is created again.
Result<void> make_anew(const SlurmObject& actual, const SlurmObject& desired)
{
    TRY(delete_reservation(actual.name));
    auto made = make_reservation(desired);
    if (!made) {
        (void)make_reservation(actual);
    }
    return made;
}

/// An update leaves no gap without a reservation, and does not change it if Slurm refuses.
Result<void> change_reservation(const SlurmObject& actual, const SlurmObject& desired)
{
    const Arguments arguments{"scontrol", "update", "reservationname=" + desired.name};
    if (auto changed = order_reservation(arguments, actual, desired); !changed) {
        const auto rest = rest_of(desired);
        if (rest && order_reservation(arguments, actual, *rest)) {
            return {};
        }
        return changed.error().text.find("already started") != std::string::npos
                   ? make_anew(actual, desired)
                   : std::move(changed);
    }
    TRY_ASSIGN(const auto after, all_reservations());
    const SlurmObject* const now = named(after, desired.name);
    return now != nullptr && now->fields != desired.fields ? make_anew(*now, desired)
                                                           : Result<void>();
}

Result<void> set_reservation(const SlurmObject& desired)
{
    TRY_ASSIGN(const auto before, all_reservations());
    const SlurmObject* const actual = named(before, desired.name);
    auto done =
        actual == nullptr ? make_reservation(desired) : change_reservation(*actual, desired);
    return !done && done.error().text.find("nodes are busy") != std::string::npos
               ? busy(done.error(), desired)
               : std::move(done);
}

std::string version_in(const std::string& output)
{
    constexpr std::string_view k_head = "gpuq-policy ";
    for (auto at = output.find(k_head); at != std::string::npos; at = output.find(k_head, at + 1)) {
        const std::string version = output.substr(at + k_head.size(), 16);
        if (version.size() == 16 &&
            version.find_first_not_of("0123456789abcdef") == std::string::npos) {
            return version;
        }
    }
    return "";
}

Result<std::string> state_location()
{
    TRY_ASSIGN(const std::string config, query({"scontrol", "show", "config"}));
    const auto settings = slurm::settings_in(config);
    const SlurmObject* const found = named(settings, "StateSaveLocation");
    return found != nullptr ? value_of(*found, "value") : std::string("/var/spool");
}

bool answers_within(std::chrono::seconds patience)
{
    const auto end = std::chrono::steady_clock::now() + patience;
    while (true) {
        const auto answer = slurm::run_command({"scontrol", "ping"}, k_patience);
        if (answer && answer->out.find(" is UP") != std::string::npos) {
            return true;
        }
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::sleep_for(100ms);
    }
}

/// Whether a job could not be changed because it ended in the meantime.
bool has_ended(const Error& error)
{
    return error.text.find("already completing") != std::string::npos ||
           error.text.find("Invalid job id") != std::string::npos;
}

bool has_systemd_unit()
{
    std::error_code ignored;
    if (!std::filesystem::is_directory("/run/systemd/system", ignored)) {
        return false;
    }
    const auto unit = slurm::run_command({"systemctl", "cat", "slurmctld"}, 10s);
    return unit && unit->status == 0;
}

} // namespace

Result<std::unique_ptr<SlurmAdmin>> SlurmAdmin::open(const std::optional<std::string>& path)
{
    TRY_ASSIGN(const std::string conf, slurm_configuration(path));
    TRY(slurm::choose_configuration(path));
    return std::unique_ptr<SlurmAdmin>(new SlurmAdmin(conf));
}

Result<SlurmState> SlurmAdmin::state()
{
    TRY(slurm::needs_accounting()); // sacctmgr's own message is a page long
    SlurmState state;
    TRY_ASSIGN(const std::string config, query({"scontrol", "show", "config"}));
    TRY_ASSIGN(const std::string partitions, query({"scontrol", "-a", "-o", "show", "partition"}));
    TRY_ASSIGN(const std::string nodes, query({"scontrol", "-o", "show", "node"}));
    TRY_ASSIGN(auto qos, all_qos());
    TRY_ASSIGN(const std::string shown, shown_associations());
    const auto associations = slurm::associations_in(shown);
    TRY_ASSIGN(auto reservations, all_reservations());
    state.nodes = slurm::nodes_in(nodes);
    state.gpu_nodes = slurm::gpu_nodes_in(nodes);
    state.threads_per_core = slurm::threads_in(nodes);
    for (auto& part : {slurm::settings_in(config), slurm::partitions_in(partitions), std::move(qos),
                       slurm::accesses_in(associations), slurm::shares_in(associations),
                       std::move(reservations)}) {
        state.objects.insert(state.objects.end(), part.begin(), part.end());
    }
    state.limits = slurm::limits_in(associations);
    for (const auto& part :
         {slurm::other_partition_fields_in(partitions), slurm::other_associations_in(shown),
          slurm::other_node_fields_in(nodes)}) {
        state.others.insert(state.others.end(), part.begin(), part.end());
    }
    std::set<std::string> accounts;
    std::set<std::string> users;
    for (const QosAssociation& one : associations) {
        (one.user.empty() ? accounts : users).insert(one.user.empty() ? one.account : one.user);
    }
    state.accounts.assign(accounts.begin(), accounts.end());
    state.users.assign(users.begin(), users.end());
    if (const SlurmObject* const release = named(state.objects, "SLURM_VERSION")) {
        state.release = value_of(*release, "value");
    }
    return state;
}

Result<void> SlurmAdmin::set(const SlurmObject& object)
{
    switch (object.kind) {
    case Kind::qos:
        return set_qos(object);
    case Kind::access:
        return set_access(object);
    case Kind::share:
        return set_share(object);
    case Kind::limit:
        return set_limit(object);
    case Kind::reservation:
        return set_reservation(object);
    default:
        return fail(Error::Kind::internal,
                    fmt::format("a {} can't be set separately", word(object.kind)));
    }
}

Result<void> SlurmAdmin::remove(Kind kind, const std::string& name)
{
    TRY_ASSIGN(const auto actual, kind == Kind::qos ? all_qos() : all_reservations());
    if (named(actual, name) == nullptr) {
        return {};
    }
    if (kind == Kind::reservation) {
        return delete_reservation(name);
    }
    // Its holders first: when 22.05 deletes a QOS that an account still has, it joins the numbers
    // next to it in the account's list (of 8,9,10 it leaves 810), which then names no QOS.
    TRY(set_access({Kind::access, name, {{"accounts", ""}, {"users", ""}}, 0}));
    return order({"sacctmgr", "-i", "delete", "qos", name});
}

Result<std::vector<QueuedJob>> SlurmAdmin::jobs()
{
    TRY_ASSIGN(const std::string printed, query({"squeue", "-h", "-a", "-o", "%P|%V"}));
    return slurm::jobs_in(printed);
}

Result<std::vector<std::string>>
SlurmAdmin::limit_jobs(const std::map<std::string, std::chrono::seconds>& time_left)
{
    TRY_ASSIGN(const std::string printed,
               query({"squeue", "-h", "-a", "-t", "R", "-o", "%A|%P|%L"}));
    std::vector<std::string> limited;
    std::optional<Error> refused;
    for (const auto& [job, left] : slurm::running_longer(time_left, printed)) {
        const auto done = order(
            {"scontrol", "update", "jobid=" + job, fmt::format("EndTime=now+{}", left.count())});
        if (done) {
            limited.push_back(job);
        } else if (!has_ended(done.error())) {
            refused = done.error();
        }
    }
    return refused ? Result<std::vector<std::string>>(*refused) : limited;
}

Result<void> SlurmAdmin::reconfigure()
{
    return order({"scontrol", "reconfigure"});
}

Result<void> SlurmAdmin::ping()
{
    // A controller that is reading its configuration may not respond for a moment.
    return answers_within(3s)
               ? Result<void>()
               : fail(Error::Kind::unreachable, "slurmctld does not answer (scontrol ping)");
}

Result<void> SlurmAdmin::start_controller()
{
    TRY(has_systemd_unit() ? order({"systemctl", "start", "slurmctld"})
                           : order({"slurmctld", "-f", m_conf.string()}));
    return answers_within(20s) ? Result<void>()
                               : fail(Error::Kind::unreachable,
                                      "slurmctld was started and does not answer: see its log");
}

Result<std::optional<std::string>> SlurmAdmin::loaded_script()
{
    const Arguments arguments{
        "sbatch",    "--test-only",        fmt::format("--job-name={}", k_probe),
        "--chdir=/", "--output=/dev/null", "--wrap=true"};
    TRY_ASSIGN(CommandAnswer answer, slurm::run_command(arguments, k_patience));
    // After a reconfiguration, a slurmctld of 23.11 or later is another process: the one that has
    // accepted the request may be gone.
    if (version_in(answer.err).empty() && means_unreachable(answer.err) && ping()) {
        TRY_ASSIGN(answer, slurm::run_command(arguments, k_patience));
    }
    const std::string version = version_in(answer.err);
    if (version.empty() && means_unreachable(answer.err)) {
        return refusal(arguments, answer);
    }
    return version.empty() ? std::nullopt : std::optional(version);
}

Result<void> SlurmAdmin::rehearse(const std::string& include, const std::string& script)
{
    TRY_ASSIGN(const std::string state_directory, state_location());
    const std::filesystem::path cache = std::filesystem::path(state_directory) / "assoc_mgr_state";
    std::error_code ignored;
    if (!std::filesystem::exists(cache, ignored)) {
        TRY(reconfigure()); // with the files in force: a new controller has not written it yet
    }
    return slurm::rehearse(m_conf, path("policy.conf"), include, script);
}

} // namespace gpuq
