// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/output_file.h"
#include "cli/base/verb.h"
#include "report/json.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

/// The output of a command with `--html FILE`: a page in a file, and text or a JSON document on
/// standard output; with `--html -` only the page, on standard output.
class PageOutput {
public:
    /// Opens the file, before the part of the command that takes long. `usage` for `-` together
    /// with --json; errors as in OutputFile::at().
    static Result<PageOutput> of(const Invocation& invocation);

    struct Content {
        std::function<std::string()> page;
        std::function<report::Json::Members()> document;
        std::function<Result<void>()> print_text;
        std::vector<std::string> warnings; ///< why data on disk is shown instead of Slurm's
    };
    /// Returns the exit status 0.
    Result<int> write(const Content& content) const;

private:
    explicit PageOutput(const Invocation& invocation)
        : m_invocation(invocation)
    {
    }

    const Invocation& m_invocation;
    std::optional<std::string> m_path;
    std::optional<OutputFile> m_file; ///< unset: no page, or on standard output
};

} // namespace gpuq::cli
