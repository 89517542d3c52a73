// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "runs/run_parameters.h"

#include <map>
#include <string>

/// Another run with the request of an earlier one (`gpuq again`).
namespace gpuq {

/// The parameters for a run like the recorded one: `given` takes precedence, and the record
/// provides everything else, except for `program`, `after`, `input` and `pty`, which are those of
/// `given`.
///
/// Variables of `given` are added to the recorded ones; a list of modules or scripts replaces that
/// list, and a virtual environment a conda environment. A value that follows from another one, such
/// as the length of links from the queue or the number of GPUs from that of ranks, is planned anew
/// if that one is given. The queues are as well if the policy has chosen them. `now`: a latest end
/// (--until) in the past is dropped.
RunParameters repeated(RunParameters given, const Request& recorded, Time now);

/// The values that such a run keeps if only its program is given, as users type them, by options of
/// gpuq run: `--gpus` is `k80:2`. Those that would be planned anew, and options rarely used, are
/// left out.
std::map<std::string, std::string> options_kept(const Request& recorded, Time now);

/// The run's program and arguments as one line to edit. core/split_arguments.h splits it into the
/// same words, for `gpuq again --program RUN -- WORDS`.
std::string again_text(const Request& request);

} // namespace gpuq
