// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <array>
#include <string>
#include <string_view>

namespace gpuq {

/// The identity of a run: made and on disk before anything is submitted, carried in the job's
/// comment, the name of its folder. Text form `20261120T131158.042Z-0f3a9c1e5b7d2468`: sorts by
/// time, then by 64 random bits.
class RunKey {
public:
    /// Deterministic: the caller passes time and randomness.
    static RunKey make(Time now, std::array<unsigned char, 8> random);

    /// The key that `text` spells; `usage` when it spells none. Everything read from outside
    /// (folder names, job comments) comes through here, so a key is always a safe file name.
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

/// The job comment that carries `key`: `gpuq:KEY`, of a later link `gpuq:KEY:LINK`.
std::string job_comment(const RunKey& key, LinkNumber link = {});

/// The key in a job's comment; `missing` when the job is not one of ours.
Result<RunKey> key_in_comment(std::string_view comment);

} // namespace gpuq
