// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/policy_ops/policy.h"
#include "cli/start/verbs.h"

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

/// The other rows, each defined in the file of its name.
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

} // namespace gpuq::cli
