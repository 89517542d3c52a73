// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "telemetry/line.h"

#include <memory>
#include <optional>
#include <string_view>

namespace gpuq::telemetry {

/// A user's own regular expression for lines that report progress, in RE2's syntax and with RE2's
/// linear run time. Named groups identify the values: (?P<step>..), (?P<epoch>..), (?P<total>..)
/// for the total of the steps, or of the epochs if there are no steps; any other name is a value,
/// such as (?P<loss>..).
class Pattern {
public:
    /// `usage` if the text is not a valid regular expression or has no named group.
    static Result<Pattern> compile(std::string_view text);

    /// The information in a line; nothing if it does not match.
    std::optional<ParsedLine> match(std::string_view line) const;

    Pattern(Pattern&&) noexcept;
    Pattern& operator=(Pattern&&) noexcept;
    ~Pattern();

private:
    struct Compiled;
    explicit Pattern(std::unique_ptr<Compiled> compiled);
    std::unique_ptr<Compiled> m_compiled;
};

} // namespace gpuq::telemetry
