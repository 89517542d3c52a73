// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "core/result.h"

#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

/// A command line that is for another host.
struct HostCall {
    std::string place;              ///< NAME[:DIR], as it was given
    std::vector<std::string> words; ///< without --host and --forward
    std::string verb;
    bool quiet = false;
    std::string cluster;          ///< --cluster, if it was given
    std::string copy_to;          ///< of `logs --to`: a file of this machine, not among the words
    bool follow = false;          ///< of `logs -f`
    bool detach = false;          ///< of `run --detach`
    bool no_stdin = false;        ///< of `run --no-stdin`
    bool ssh_config = false;      ///< of `connect --config`: for this machine's ssh
    std::string run;              ///< of `connect`: as it was given
    bool unknown_options = false; ///< of a verb that is known here
    std::vector<std::string> forwards; ///< --forward, as they were given
    std::string called =
        "gpuq"; ///< what the person types for a verb there; --host, if it was given
    bool operator==(const HostCall&) const = default;
};

/// Whether `words` are for another host: --host among gpuq's own options, before or after the verb;
/// else `configured`. Nothing: they are for this machine, as help, completion and --version always
/// are, and `cluster`, which is about a machine, unless it is asked for by --host. A command line
/// that is wrong here may be right there: it goes where it is sent.
std::optional<HostCall> host_call(const std::vector<std::string>& words,
                                  const std::optional<std::string>& configured);

/// What a call says to gpuq whatever the verb.
std::vector<std::string> global_words(const HostCall& call);
/// The call's words with further options of its verb, where no `--` can stand before them.
std::vector<std::string> with_options(const HostCall& call,
                                      const std::vector<std::string>& options);

/// `gpuq logs` of the run with this key as in the call, but from where further options say.
std::vector<std::string> log_again(const HostCall& call, const std::vector<std::string>& options,
                                   const std::string& key);

/// What may be made again from the beginning when it has shown nothing: it only looks.
bool only_looks(std::string_view verb);
/// Of these, what also ends soon, whatever it shows.
bool is_brief(std::string_view verb);
/// Prints whole lines of gpuq's own: no program's output, no screen and no question.
bool prints_lines(std::string_view verb);
/// Reads its standard input.
bool reads_input(std::string_view verb);
/// Takes paths, or begins something in the working folder.
bool takes_paths(std::string_view verb);
/// Shows a run to its end.
bool follows_run(std::string_view verb);

} // namespace gpuq::cli
