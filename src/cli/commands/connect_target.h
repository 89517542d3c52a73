// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/host/ssh_config.h"
#include "ports/store.h"
#include "runs/status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

struct Invocation;
class Services;

/// The run of that name, which the command `verb` connects ssh to. An error if it has ended, after
/// its keys have been removed.
Result<RunStatus> find_connectable(Invocation& invocation, Store& store, const std::string& name,
                                   std::string_view verb);

/// An error unless the run has a job: `missing` if it has ended, others if it is waiting or its
/// state is unknown.
Result<void> check_running(const RunStatus& run);

/// The run as a host for ssh on this machine, by these names.
Result<SshHost> host_of(Invocation& invocation, Store& store, const RunStatus& run,
                        std::vector<std::string> names);

/// Data about a run for `gpuq --host`, which generates the lines for ssh_config itself: it accepts
/// no text from this host.
Result<int> print_target(const Services& services, const RunStatus& run);

/// The line with which `connect --greet` names the run, for `gpuq forward`: its name may denote
/// another run later.
std::string line_of_run(const RunKey& key);
std::optional<RunKey> run_in_line(std::string_view line);

} // namespace gpuq::cli
