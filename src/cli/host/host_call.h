// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/host/editor.h"
#include "core/result.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

/// A command line for another host.
struct HostCall {
    std::string place;                  ///< NAME[:DIR], as given
    std::vector<std::string> arguments; ///< without --host and --forward
    std::string verb;
    bool quiet = false;
    std::string cluster;      ///< --cluster, if given
    std::string copy_to;      ///< for `logs --to`: a file on this machine, removed from `arguments`
    bool follow = false;      ///< for `logs -f`
    bool timestamps = false;  ///< for `logs --timestamps`
    bool detach = false;      ///< for `run --detach`
    bool prints_only = false; ///< for `top --once`, `top --json` and --dry-run
    bool no_stdin = false;    ///< for `run --no-stdin`
    bool ssh_config = false;  ///< for `connect --config`: output for ssh on this machine
    std::optional<Editing> editing;    ///< for `code`: an editor on this machine
    std::optional<Error> refused;      ///< of this command line, on this machine
    std::string run;                   ///< for `connect` and `code`: as given
    bool carries = false;              ///< for `notebook --carry` and `tensorboard --carry`
    bool unknown_options = false;      ///< the verb is known to this gpuq, its options are not
    std::vector<std::string> forwards; ///< --forward, as given
    std::string called = "gpuq"; ///< command that runs a verb on the host; has --host if given
    std::size_t verbose = 0;     ///< how often -v was given
    bool operator==(const HostCall&) const = default;
};

/// Whether `arguments` are for another host: --host among gpuq's own options, before or after the
/// verb, or else `configured`. Nothing if they are for this machine. This is always the case for
/// help, completion, serve and --version, and for `cluster`, which concerns one machine, unless
/// --host is given. `verbs` are those of this gpuq. A command line that is invalid here may be
/// valid on the host and is still sent.
std::optional<HostCall> host_call(const std::vector<std::string>& arguments,
                                  const std::optional<std::string>& configured, Verbs verbs);

/// The global options of a call, which any verb accepts.
std::vector<std::string> global_arguments(const HostCall& call);
/// The call's arguments with further options inserted after the verb, where no `--` precedes them.
std::vector<std::string> with_options(const HostCall& call,
                                      const std::vector<std::string>& options);

/// `gpuq logs` of the run with this key as in the call, but from the position given by further
/// options.
std::vector<std::string> log_again(const HostCall& call, const std::vector<std::string>& options,
                                   const std::string& key);

/// Whether the verb only queries: it may be repeated from the beginning if it has shown nothing.
bool only_reads(std::string_view verb);
/// Whether such a verb also ends soon, regardless of its output.
bool is_brief(std::string_view verb);
/// Whether standard output has only gpuq's own text: no program output and no screen. True for a
/// verb that only the host knows.
bool prints_text(const HostCall& call);
/// Whether it reads its standard input.
bool reads_input(std::string_view verb);
/// Whether it takes paths, or starts a program in the current directory.
bool takes_paths(std::string_view verb);
/// Whether it shows a run until its end.
bool follows_run(std::string_view verb);

} // namespace gpuq::cli
