// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <functional>
#include <istream>
#include <optional>
#include <string>

namespace gpuq::slurm {

class MessageCapture;

/// `usage` if the slurm.conf at this path includes a missing file: each program that reads it
/// through libslurm would retry for a minute before reporting that.
Result<void> check_includes(const std::string& conf);

/// Selects the configuration for this process. `usage` if there is none, if it includes a missing
/// file, or if a different one was selected before.
Result<void> choose_configuration(const std::optional<std::string>& path);

/// Makes libslurm read the selected configuration; later calls do nothing. Required before any
/// request (Words in errors.h calls it). Not thread-safe.
void load_configuration();

/// Preloads the plugins that libslurm's first request needs, which saves that request 1 ms. Errors
/// are ignored: libslurm loads the plugins itself if necessary.
void load_plugins();

/// Marks this process as a forked copy that must not run its parent's exit handlers. If libslurm
/// exits in it, `on_exit` receives the reason.
void leave_without_handlers(std::function<void(const std::string&)> on_exit);

/// While `capture` (errors.h) collects libslurm's output on this thread, an exit() is libslurm's,
/// and its reason is reported. Null: no request is running.
void listen(const MessageCapture* capture);

/// ClusterName of the configuration. If its text states it plainly, libslurm need not read it.
std::string cluster_name();

/// ClusterName in the text of a slurm.conf if exactly one line sets it and no file is included, so
/// that it is the value that libslurm would use; else nullopt.
std::optional<std::string> cluster_name_in(std::istream& conf);

/// False with AccountingStorageType=accounting_storage/none.
bool has_accounting();

/// False with TaskPlugin=task/none, for which srun warns about --cpu-bind.
bool has_cpu_binding();

} // namespace gpuq::slurm
