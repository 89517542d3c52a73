// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <array>
#include <string>
#include <string_view>

namespace gpuq {

/// The identity of a run. It is generated and written to disk before anything is submitted, is part
/// of the job's comment, and names the run's directory. The text form
/// `20261120T131158.042Z-0f3a9c1e5b7d2468` sorts by time, then by 64 random bits.
class RunKey {
public:
    /// Deterministic: the caller supplies time and randomness.
    static RunKey make(Time now, std::array<unsigned char, 8> random);

    /// Parses a key; `usage` if `text` is not one. All text from outside (directory names, job
    /// comments) must pass through here, so a key is always a safe file name.
    static Result<RunKey> parse(std::string_view text);

    const std::string& text() const { return m_text; }
    /// When the key was made.
    Time made_at() const;

    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null pointer in a defaulted <=>
    auto operator<=>(const RunKey&) const = default;

private:
    explicit RunKey(std::string text)
        : m_text(std::move(text))
    {
    }
    std::string m_text;
};

/// The job comment that carries `key`: `gpuq:KEY`, or `gpuq:KEY:LINK` for links after the first.
std::string job_comment(const RunKey& key, LinkNumber link = {});

/// Extracts the key from a job comment; `missing` when gpuq did not submit the job.
Result<RunKey> key_in_comment(std::string_view comment);

} // namespace gpuq
