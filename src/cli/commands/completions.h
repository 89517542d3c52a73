// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace gpuq::cli {

/// Where the words come from that no table of commands has.
struct CompletionSources {
    std::function<std::vector<std::string>()> runs; ///< as users type them
    std::function<std::vector<std::string>()> queues;
    /// The paths that begin with a text; directories end with `/`.
    std::function<std::vector<std::string>(const std::string& beginning)> files;
    std::function<std::vector<std::string>()> conda, modules; ///< environments of these kinds
};

/// The words that the last of a gpuq command's arguments may become, sorted: commands, options,
/// their values, runs, files, environments. The same tables as the shells' completion scripts use.
std::vector<std::string> completions(const std::vector<std::string>& arguments,
                                     const CompletionSources& sources);

} // namespace gpuq::cli
