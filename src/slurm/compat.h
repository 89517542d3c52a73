// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

/// The differences between Slurm 22.05 and 26.05, in one place. contrib/check-slurm-headers.sh
/// compiles this directory against the headers of any release.

static_assert(SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 5, 0),
              "gpuq needs Slurm 22.05 or newer");

// Exported by libslurm in all these releases, but not declared in a public header.
extern "C" {
extern slurm_conf_t slurm_conf;
extern void slurm_xfree(void** item);
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
extern char* slurm_job_state_reason_string(enum job_state_reason reason);
#else
extern char* slurm_job_reason_string(enum job_state_reason reason);
#endif
}

namespace gpuq::slurm {

/// `List` became `list_t*` in 24.11.
using List = decltype(slurm_list_create(nullptr));

/// TRES strings name a GPU `gres:gpu` before 23.11 and `gres/gpu` since, a shard `gres:shard` or
/// `gres/shard`; the other spelling is silently ignored.
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
constexpr std::string_view k_gres_prefix = "gres/";
#else
constexpr std::string_view k_gres_prefix = "gres:";
#endif

/// The job id of a message: a separate field, or part of its step id since 25.11.
template <typename Message>
std::uint32_t job_id_of(const Message& message)
{
    if constexpr (requires { message.job_id; }) {
        return message.job_id;
    } else {
        return message.step_id.job_id;
    }
}

template <typename Message>
void set_job_id(Message& message, std::uint32_t job)
{
    if constexpr (requires { message.job_id; }) {
        message.job_id = job;
    } else {
        message.step_id.job_id = job;
    }
}

/// Names a whole job where a release expects a step id.
inline slurm_step_id_t whole_job(std::uint32_t job)
{
    slurm_step_id_t id{};
    id.job_id = job;
    id.step_id = NO_VAL;
    id.step_het_comp = NO_VAL;
    return id;
}

inline int load_job(job_info_msg_t** answer, std::uint32_t job, std::uint16_t flags)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
    return slurm_load_job(answer, whole_job(job), flags);
#else
    return slurm_load_job(answer, job, flags);
#endif
}

/// Includes deleted accounts: a separate field, or a flag since 24.05.
inline void with_deleted(slurmdb_account_cond_t& condition)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
    condition.flags = static_cast<decltype(condition.flags)>(SLURMDB_ACCT_FLAG_DELETED);
#else
    condition.with_deleted = 1;
#endif
}

/// CPUs allocated on a node: a field since 25.05, before that queried from a plugin.
inline std::optional<int> cpus_in_use(const node_info_t& info)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
    return info.alloc_cpus;
#else
    std::uint16_t count = 0;
    const int rc = info.select_nodeinfo == nullptr
                       ? SLURM_ERROR
                       : slurm_get_select_nodeinfo(info.select_nodeinfo, SELECT_NODEDATA_SUBCNT,
                                                   NODE_STATE_ALLOCATED, &count);
    return rc == SLURM_SUCCESS ? std::optional<int>(count) : std::nullopt;
#endif
}

/// The resources that jobs hold on a node, as in `cpu=4,gres/gpu=1,gres/shard=2`: a field since
/// 25.05. Empty if no job holds any; nullopt if not reported.
inline std::optional<std::string> tres_in_use(const node_info_t& info)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
    return std::string(info.alloc_tres_fmt_str == nullptr ? "" : info.alloc_tres_fmt_str);
#else
    char* text = nullptr;
    const int rc =
        info.select_nodeinfo == nullptr
            ? SLURM_ERROR
            : slurm_get_select_nodeinfo(info.select_nodeinfo, SELECT_NODEDATA_TRES_ALLOC_FMT_STR,
                                        NODE_STATE_ALLOCATED, &text);
    std::optional<std::string> tres;
    if (rc == SLURM_SUCCESS) {
        tres = text == nullptr ? "" : text;
    }
    void* memory = text;
    slurm_xfree(&memory);
    return tres;
#endif
}

inline int load_steps(job_step_info_response_msg_t** answer, std::uint32_t job, std::uint16_t flags)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
    slurm_step_id_t id = whole_job(job);
    return slurm_get_job_steps(&id, answer, flags);
#else
    return slurm_get_job_steps(0, job, NO_VAL, answer, flags);
#endif
}

inline int complete_job(std::uint32_t job, std::uint32_t wait_status)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
    slurm_step_id_t id = whole_job(job);
    return slurm_complete_job(&id, wait_status);
#else
    return slurm_complete_job(job, wait_status);
#endif
}

/// Frees the name from slurm_create_reservation: from malloc until 24.11 and from Slurm's own
/// allocator in 26.05, as its header states there. For the releases between, whose headers were not
/// read, the few bytes stay.
inline void free_reservation_name(char* name)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
    void* memory = name;
    slurm_xfree(&memory);
#elif SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 5, 0)
    std::free(name); // NOLINT(cppcoreguidelines-no-malloc)
#else
    (void)name;
#endif
}

inline void free_conf(slurm_conf_t* conf)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
    slurm_free_conf(conf);
#else
    slurm_free_ctl_conf(conf);
#endif
}

/// Whether accounting stores job comments (AccountingStoreFlags=job_comment).
inline bool keeps_comments()
{
#ifdef CTL_CONF_SJC
    return (slurm_conf.conf_flags & CTL_CONF_SJC) != 0;
#else
    return (slurm_conf.conf_flags & CONF_FLAG_SJC) != 0;
#endif
}

/// Whether nodes' memory is allocated to jobs (SelectTypeParameters=CR_*_Memory); 26.05 renamed the
/// flag.
inline bool counts_memory(const slurm_conf_t& conf)
{
#ifdef CR_MEMORY
    return (conf.select_type_param & CR_MEMORY) != 0;
#else
    return (conf.select_type_param & SELECT_MEMORY) != 0;
#endif
}

/// `job`: an id, or a part of an array or heterogeneous job (`20_3`, `20+1`).
inline int kill_job(const std::string& job, std::uint16_t signal)
{
    return slurm_kill_job2(job.c_str(), signal, 0, nullptr);
}

inline std::string reason_word(std::uint32_t reason)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
    const char* word = slurm_job_state_reason_string(static_cast<job_state_reason>(reason));
#else
    const char* word = slurm_job_reason_string(static_cast<job_state_reason>(reason));
#endif
    return word == nullptr ? "" : word;
}

} // namespace gpuq::slurm
