// SPDX-License-Identifier: GPL-2.0-or-later
#include "ports/reservation.h"

#include "core/strings.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <pwd.h>
#include <thread>
#include <type_traits>
#include <utility>

namespace gpuq {
namespace slurm {
namespace {

using namespace std::chrono_literals;

struct FreeReservations {
    void operator()(reserve_info_msg_t* message) const { slurm_free_reservation_info_msg(message); }
};
using Reservations = std::unique_ptr<reserve_info_msg_t, FreeReservations>;

std::string text(const char* value)
{
    return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> names_in(const char* list)
{
    const std::string names = text(list);
    std::vector<std::string> each;
    for (const std::string_view name : fields(names, ",")) {
        each.emplace_back(name);
    }
    return each;
}

Time time_of(std::time_t seconds)
{
    return Time(std::chrono::seconds(seconds));
}

Reservation reservation_of(const reserve_info_t& info)
{
    return {text(info.name),        time_of(info.start_time), time_of(info.end_time),
            text(info.node_list),   text(info.partition),     names_in(info.users),
            names_in(info.accounts)};
}

Result<Reservations> load_reservations()
{
    const MessageCapture capture{"reservations"};
    reserve_info_msg_t* answer = nullptr;
    if (slurm_load_reservations(0, &answer) != SLURM_SUCCESS) {
        return error_of(errno, Question::other, "can't ask Slurm for its reservations",
                        capture.text());
    }
    return Reservations(answer);
}

/// slurmctld gives a job_submit.lua a new view of the reservations only if its last change is of a
/// later second than that of the old view (22.05, _update_resvs_global): after a second change in
/// the same second, the script would read a reservation that has been freed. The clocks of this
/// host and of the controller may differ by a second.
Result<void> wait_for_new_second()
{
    TRY_ASSIGN(const Reservations known, load_reservations());
    const std::time_t now = std::time(nullptr);
    if (known->last_update >= now - 1 && known->last_update <= now + 1) {
        std::this_thread::sleep_for(2100ms);
    }
    return {};
}

Error refused(int code, const std::string& name, const std::string& message)
{
    if (code == ESLURM_USER_ID_MISSING || code == ESLURM_ACCESS_DENIED) {
        return fail(Error::Kind::denied,
                    "Slurm lets only its operators (AdminLevel in sacctmgr) make and remove "
                    "reservations; man gpuq-reserve describes how others can");
    }
    if (code == ESLURM_RESERVATION_INVALID) {
        return fail(Error::Kind::missing, fmt::format("Slurm has no reservation {}", name));
    }
    const bool busy = code == ESLURM_RESERVATION_BUSY || code == ESLURM_NODES_BUSY ||
                      code == ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE ||
                      code == ESLURM_RESERVATION_OVERLAP;
    Error error = error_of(code, Question::other, fmt::format("reservation {}", name), message);
    return busy ? fail(Error::Kind::busy, error.text) : std::move(error);
}

/// The first of the users that this host does not know; empty if there is none.
std::string unknown_user(const std::vector<std::string>& users)
{
    const auto found = std::find_if(users.begin(), users.end(), [](const std::string& user) {
        return ::getpwnam(user.c_str()) == nullptr;
    });
    return found == users.end() ? std::string() : *found;
}

/// A list of sizes that ends with 0 before 24.11, a number since.
template <typename Message>
void set_node_count(Message& message, std::array<std::uint32_t, 2>& nodes)
{
    if constexpr (std::is_pointer_v<decltype(message.node_cnt)>) {
        message.node_cnt = nodes.data();
    } else {
        message.node_cnt = nodes[0];
    }
}

/// libslurm takes char*, and changes none of them.
struct Description {
    std::string name, partition{}, users{};
    std::array<std::uint32_t, 2> nodes{0, 0};
    resv_desc_msg_t message{};

    explicit Description(std::string its_name)
        : name(std::move(its_name))
    {
        slurm_init_resv_desc_msg(&message);
        message.name = name.data();
    }
    Description(const Description&) = delete;
    Description& operator=(const Description&) = delete;
};

} // namespace
} // namespace slurm

Result<std::vector<Reservation>> SlurmCluster::reservations()
{
    TRY_ASSIGN(const slurm::Reservations message, slurm::load_reservations());
    const std::time_t now = std::time(nullptr);
    std::vector<Reservation> list;
    for (std::uint32_t i = 0; i < message->record_count; ++i) {
        const reserve_info_t& info = message->reservation_array[i];
        if (info.end_time > now) { // one that is over stays while a job of it ends
            list.push_back(slurm::reservation_of(info));
        }
    }
    return list;
}

Result<void> SlurmCluster::reserve(const ReservationSpec& spec)
{
    TRY(slurm::wait_for_new_second());
    slurm::Description asked(spec.name);
    asked.partition = spec.partition;
    asked.users = fmt::format("{}", fmt::join(spec.users, ","));
    asked.nodes[0] = static_cast<std::uint32_t>(spec.nodes);
    asked.message.partition = asked.partition.data();
    asked.message.users = asked.users.data();
    slurm::set_node_count(asked.message, asked.nodes);
    asked.message.start_time =
        std::chrono::floor<std::chrono::seconds>(spec.start).time_since_epoch().count();
    asked.message.duration = static_cast<std::uint32_t>(spec.duration.count());
    // Jobs that still wait at its end run outside it, instead of being held.
    asked.message.flags = RESERVE_FLAG_NO_HOLD_JOBS;
    const slurm::MessageCapture capture{"a new reservation"};
    char* const name = slurm_create_reservation(&asked.message);
    if (name == nullptr) {
        const int code = errno;
        // slurmctld's error for an unknown user is the same as for a caller who is no operator, or,
        // in 26.05, that for nothing in particular.
        const bool may_be_user = code == ESLURM_USER_ID_MISSING || code == SLURM_ERROR;
        const std::string unknown = slurm::unknown_user(spec.users);
        return may_be_user && !unknown.empty()
                   ? fail(Error::Kind::missing,
                          fmt::format("--users: this host knows no user '{}'", unknown))
                   : slurm::refused(code, spec.name, capture.text());
    }
    slurm::free_reservation_name(name);
    return {};
}

Result<void> SlurmCluster::remove_reservation(const std::string& name)
{
    TRY(slurm::wait_for_new_second());
    std::string its_name = name;
    reservation_name_msg_t message{};
    message.name = its_name.data();
    const slurm::MessageCapture capture{"removal of a reservation"};
    if (slurm_delete_reservation(&message) != SLURM_SUCCESS) {
        return slurm::refused(errno, name, capture.text());
    }
    return {};
}

Result<void> SlurmCluster::end_reservation(const std::string& name)
{
    TRY(slurm::wait_for_new_second());
    slurm::Description asked(name);
    asked.message.end_time = std::time(nullptr);
    const slurm::MessageCapture capture{"the end of a reservation"};
    if (slurm_update_reservation(&asked.message) != SLURM_SUCCESS) {
        return slurm::refused(errno, name, capture.text());
    }
    return {};
}

} // namespace gpuq
