// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <functional>
#include <istream>
#include <optional>
#include <string>

namespace gpuq::slurm {

class Words;

/// `usage` when the slurm.conf at this path includes a file that is not there: libslurm tries again
/// for a minute in every program that reads it, before it says so.
Result<void> check_includes(const std::string& conf);

/// Says which configuration this process is to use. `usage` when there is none, when it includes a
/// file that is not there, or when another one was chosen before.
Result<void> choose_configuration(const std::optional<std::string>& path);

/// Has libslurm read it, the first time that one is chosen; before any question (errors.h, Words,
/// sees to it). Not from two threads at once.
void load_configuration();

/// Has the linker load the plugins that libslurm's first question needs, so that this need not wait
/// for them (1 ms). Nothing is lost when it can't: libslurm looks for them itself.
void load_plugins();

/// From now on this process is a copy that must not run its parent's exit handlers. Where libslurm
/// ends it, `on_exit` gets the reason.
void leave_without_handlers(std::function<void(const std::string&)> on_exit);

/// While `words` (errors.h) collects what libslurm says to this thread, an exit of it is one by
/// libslurm, and says why. Gives what was set before; null: none.
const Words* listen(const Words* words);

/// ClusterName of the configuration; where its text has that in the plain, libslurm need not read
/// it.
std::string cluster_name();

/// ClusterName in the text of a slurm.conf, where one line begins with it and nothing is included:
/// what libslurm would find, else nothing.
std::optional<std::string> cluster_name_in(std::istream& conf);

/// False with AccountingStorageType=accounting_storage/none.
bool has_accounting();

/// False with TaskPlugin=task/none, where srun warns of a --cpu-bind.
bool has_cpu_binding();

} // namespace gpuq::slurm
