// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "telemetry/line.h"

#include <memory>
#include <optional>
#include <string_view>

namespace gpuq::telemetry {

/// A person's own regular expression for the lines that tell a progress: RE2's, whose time is
/// linear in the line. Named groups say what is what: (?P<step>..), (?P<epoch>..), (?P<total>..)
/// of the steps, else of the epochs; every other name is a value, as (?P<loss>..).
class Pattern {
public:
    /// `usage` for what is no regular expression, or names no group.
    static Result<Pattern> compile(std::string_view text);

    /// What a line tells; nothing when it does not match.
    std::optional<Told> match(std::string_view line) const;

    Pattern(Pattern&&) noexcept;
    Pattern& operator=(Pattern&&) noexcept;
    ~Pattern();

private:
    struct Compiled;
    explicit Pattern(std::unique_ptr<Compiled> compiled);
    std::unique_ptr<Compiled> m_compiled;
};

} // namespace gpuq::telemetry
