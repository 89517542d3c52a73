// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/pending_reason.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {
namespace {

using Kind = PendingReason::Kind;

// Sources: squeue(1), JOB REASON CODES, and src/common/slurm_protocol_defs.c of Slurm 22.05 to
// 26.05.
constexpr PendingReason k_reasons[] = {
    {"None", "just queued", Kind::soon},
    {"Resources", "no GPU is free", Kind::no_resources},
    {"Priority", "others are before you", Kind::others_first},
    {"Dependency", "another run has to end first", Kind::after_another},
    {"DependencyNeverSatisfied", "the run it depends on did not succeed", Kind::never},
    {"NextLink", "its next link has no job yet; it is being submitted", Kind::soon},
    {"Ticket", "its Kerberos ticket ends: log in (kinit), then any gpuq command continues it",
     Kind::later},
    {"BeginTime", "its start time has not come", Kind::later},
    {"JobHeldUser", "held by you (scontrol release)", Kind::held_by_owner},
    {"JobHeldAdmin", "held by an operator", Kind::held_by_others},
    {"JobHoldMaxRequeue", "held: it was started again too often", Kind::held_by_others},
    {"launch_failed_requeued_held", "held: it could not be started", Kind::held_by_owner},
    {"Reservation", "its reservation has not begun", Kind::later},
    {"ReservationDeleted", "its reservation is gone", Kind::never},
    {"InvalidReservation", "its reservation is not valid", Kind::never},
    {"PartitionDown", "the queue is closed", Kind::closed},
    {"PartitionInactive", "the queue is closed", Kind::closed},
    {"PartitionTimeLimit", "it asks for more time than the queue gives", Kind::too_large},
    {"PartitionNodeLimit", "it asks for more nodes than the queue gives", Kind::too_large},
    {"PartitionConfig", "it requests resources that the queue does not have", Kind::too_large},
    {"NodeDown", "a node it needs is down", Kind::closed},
    {"Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
     "the nodes it needs are down, drained or reserved", Kind::closed},
    {"ReqNodeNotAvail", "the nodes it needs are not available", Kind::closed},
    {"BadConstraints", "no node of this cluster satisfies its request", Kind::never},
    {"FrontEndDown", "no front end is up", Kind::closed},
    {"Licenses", "a licence is not free", Kind::no_resources},
    {"BurstBufferResources", "the burst buffer is full", Kind::no_resources},
    {"BurstBufferStageIn", "its data is being brought in", Kind::soon},
    {"BurstBufferOperation", "its burst buffer failed", Kind::held_by_others},
    {"PowerNotAvail", "there is not enough power", Kind::no_resources},
    {"PowerReserved", "it waits for power", Kind::no_resources},
    {"JobArrayTaskLimit", "the task limit of its array is reached", Kind::own_limit},
    {"Cleaning", "its last attempt is being cleaned up", Kind::soon},
    {"Prolog", "its node is being made ready", Kind::soon},
    {"DeadLine", "it can't end before its deadline", Kind::never},
    {"SchedDefer", "Slurm has put off placing it for a moment", Kind::soon},
    {"InvalidAccount", "its account is not valid", Kind::not_allowed},
    {"InvalidQOS", "its QOS is not valid", Kind::not_allowed},
    {"AccountNotAllowed", "its account may not use the queue", Kind::not_allowed},
    {"QOSNotAllowed", "its QOS may not use the queue", Kind::not_allowed},
    {"QOSUsageThreshold", "its account has used too much for its QOS", Kind::group_limit},
    {"QOSTimeLimit", "its QOS has no time left", Kind::group_limit},
    {"QOSJobLimit", "the job limit of its QOS is reached", Kind::group_limit},
    {"QOSResourceLimit", "the resource limit of its QOS is reached", Kind::group_limit},
    {"AssociationJobLimit", "the job limit of the account is reached", Kind::group_limit},
    {"AssociationResourceLimit", "the resource limit of the account is reached", Kind::group_limit},
    {"AssociationTimeLimit", "the account has no time left", Kind::group_limit},
    {"AssocMaxJobsLimit", "your run limit is reached", Kind::own_limit},
};

bool has(std::string_view word, std::string_view part)
{
    return word.find(part) != std::string_view::npos;
}

bool is_limit(std::string_view word)
{
    return word.starts_with("QOS") || word.starts_with("Assoc") || word.starts_with("MaxGRES") ||
           has(word, "Limit");
}

const PendingReason* named(std::string_view word)
{
    const auto* const found =
        std::find_if(std::begin(k_reasons), std::end(k_reasons),
                     [&](const PendingReason& row) { return row.word == word; });
    return found == std::end(k_reasons) ? nullptr : found;
}

} // namespace

std::span<const PendingReason> pending_reasons()
{
    return k_reasons;
}

PendingReason::Kind kind_of_reason(std::string_view word)
{
    if (word.empty()) {
        return Kind::soon;
    }
    if (const PendingReason* row = named(word)) {
        return row->kind;
    }
    if (!is_limit(word)) {
        return Kind::unknown;
    }
    if (has(word, "PerUser") || has(word, "PU")) {
        return Kind::own_limit;
    }
    // E.g. QOSMaxGRESPerJob, AssocMaxWallDurationPerJobLimit, QOSMinCpuNotSatisfied.
    return has(word, "PerJob") || has(word, "PerNode") || has(word, "QOSMin") ? Kind::too_large
                                                                              : Kind::group_limit;
}

bool is_in_line(std::string_view word)
{
    switch (kind_of_reason(word)) {
    case Kind::after_another:
    case Kind::never:
    case Kind::held_by_owner:
    case Kind::held_by_others:
    case Kind::later:
    case Kind::too_large:
        return false;
    default:
        return true;
    }
}

std::string pending_reason_text(std::string_view word, const GpuRequest& asked)
{
    if (asked.share && word == "Resources") {
        return "no share of a GPU is free";
    }
    if (asked.count == 0 && word == "Resources") {
        return "not enough cores or memory are free";
    }
    if (asked.count > 1 && word == "Resources") {
        return "too few GPUs are free";
    }
    if (word.empty()) {
        return "just queued";
    }
    if (const PendingReason* row = named(word)) {
        return std::string(row->text);
    }
    switch (kind_of_reason(word)) {
    case Kind::own_limit:
        return fmt::format("your limit is reached ({})", word);
    case Kind::group_limit:
        return fmt::format("a limit of your group is reached ({})", word);
    case Kind::too_large:
        return fmt::format("it asks for more than one run may have ({})", word);
    default:
        return std::string(word);
    }
}

} // namespace gpuq
