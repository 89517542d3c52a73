// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/policy_ops/policy.h"
#include "cli/start/verbs.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

/// Every verb of this version, in the order of help.
Verbs verbs();
/// The same with those that only programs call, which help and completion omit.
Verbs every_verb();

/// Names that the contract reserves for later versions.
std::span<const std::string_view> reserved_verbs();

/// The `usage` error for a name that is reserved, or unknown (with the nearest name).
Error no_such_verb(std::string_view name);

/// The rows of this module, each defined in the file of its name.
extern const Verb k_attach_verb;
extern const Verb k_logs_verb;
extern const Verb k_ls_verb;
extern const Verb k_top_verb;
extern const Verb k_free_verb;
extern const Verb k_reserve_verb;
extern const Verb k_why_verb;
extern const Verb k_show_verb;
extern const Verb k_diff_verb;
extern const Verb k_profile_verb;
extern const Verb k_usage_verb;
extern const Verb k_site_verb;
extern const Verb k_stop_verb;
extern const Verb k_wait_verb;
extern const Verb k_resume_verb;
extern const Verb k_extend_verb;
extern const Verb k_save_verb;
extern const Verb k_exempt_verb;
extern const Verb k_keepalive_verb;
extern const Verb k_clean_verb;
extern const Verb k_connect_verb;
extern const Verb k_code_verb;
extern const Verb k_forward_verb;
extern const Verb k_doctor_verb;
extern const Verb k_report_verb;
extern const Verb k_cluster_verb;
extern const Verb k_completion_verb;
extern const Verb k_help_verb;
extern const Verb k_serve_verb;

/// The table, in the order of help.
inline constexpr std::array k_verbs = {
    &k_run_verb,
    &k_again_verb,
    &k_sweep_verb,
    &k_shell_verb,
    &k_notebook_verb,
    &k_attach_verb,
    &k_logs_verb,
    &k_ls_verb,
    &k_top_verb,
    &k_free_verb,
    &k_reserve_verb,
    &k_why_verb,
    &k_show_verb,
    &k_diff_verb,
    &k_profile_verb,
    &k_usage_verb,
    &k_site_verb,
    &k_stop_verb,
    &k_wait_verb,
    &k_resume_verb,
    &k_rehearse_verb,
    &k_extend_verb,
    &k_save_verb,
    &k_exempt_verb,
    &k_keepalive_verb,
    &k_clean_verb,
    &k_connect_verb,
    &k_code_verb,
    &k_forward_verb,
    &k_tensorboard_verb,
    &k_doctor_verb,
    &k_report_verb,
    &k_policy_verb,
    &k_cluster_verb,
    &k_completion_verb,
    &k_help_verb,
    // Called by programs only, the last k_hidden_verbs:
    &k_serve_verb,
};
constexpr std::size_t k_hidden_verbs = 1;

} // namespace gpuq::cli
