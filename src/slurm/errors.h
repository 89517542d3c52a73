// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::slurm {

/// While one lives, what libslurm would print on the terminal is kept here instead: it reports the
/// reasons for a refusal (job_submit.lua's words among them) in no other way.
///
/// It replaces the variable `stderr`, which glibc allows: only writes through that stream are
/// caught, other threads' write(2) to descriptor 2 is not. One at a time; a second waits. The first
/// has libslurm read its configuration (connection.h).
class Words {
public:
    Words();
    ~Words();
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;

    /// What was printed, in one line, without libslurm's prefixes.
    std::string text() const;

private:
    std::unique_lock<std::mutex> m_turn;
    std::FILE* m_before;
};

/// libslurm's output as one line: `gpuq: error: ` and line ends removed.
std::string tidy(std::string_view printed);

/// What was asked, for it decides what a refusal means.
enum class Question {
    start, ///< an immediate allocation: what can not be now may be later
    submit,
    other,
};

/// The kind of a Slurm error code (errno after a call that failed).
Error::Kind kind_of(int code, Question question);

/// True for codes that say: the job has ended already.
bool says_ended(int code);

/// True when `code` proves that the request never left this machine.
bool never_sent(int code);

/// The words of the lua that a policy makes, without its name and without what sbatch adds;
/// nothing when they are another's.
std::optional<std::string> words_of_policy(const std::string& words);

/// The release of the libslurm that gpuq was built with: `22.05.8`.
std::string library_version();

/// What `words` of libslurm, or `code`, mean when controller and libslurm are of releases that do
/// not talk to each other: both releases, as far as they are known, and what to do. Nothing for
/// other failures.
std::optional<std::string> protocol_mismatch(int code, std::string_view words);

/// What `words` of libslurm mean when munged does not answer. Nothing for other failures.
std::optional<std::string> munge_failure(std::string_view words);

/// An error for people: `what`, then Slurm's own words (or the code's text when it had none).
Error error_of(int code, Question question, std::string_view what, const std::string& words);

} // namespace gpuq::slurm
