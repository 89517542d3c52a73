// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "log/log.h"

#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::slurm {

/// Captures libslurm's terminal output for as long as the object exists: libslurm has no other way
/// to report the reasons for a refusal (including messages of job_submit.lua).
///
/// It replaces the variable `stderr`, which glibc allows. Only writes through that stream are
/// captured, not write(2) to descriptor 2 by other threads. Only one object exists at a time: a
/// second constructor waits. The first one makes libslurm read its configuration (connection.h).
class MessageCapture {
public:
    /// `request` names it in the log, which gets its duration and libslurm's output.
    explicit MessageCapture(std::string_view request);
    ~MessageCapture();
    MessageCapture(const MessageCapture&) = delete;
    MessageCapture& operator=(const MessageCapture&) = delete;

    /// The captured output as one line, without libslurm's prefixes.
    std::string text() const;

private:
    std::unique_lock<std::mutex> m_turn;
    std::FILE* m_before;
    log::Timer m_timer;
};

/// libslurm's output as one line, without `gpuq: error: ` and line ends.
std::string tidy(std::string_view printed);

/// The type of a request, which determines the meaning of an error code.
enum class Question {
    start, ///< an immediate allocation: the job may be able to start later
    submit,
    other,
};

/// Classifies a Slurm error code (errno after a failed call).
Error::Kind kind_of(int code, Question question);

/// True for codes that mean that the job has already ended.
bool means_ended(int code);

/// True when `code` proves that the request never left this machine.
bool never_sent(int code);

/// The message of a policy's job_submit.lua, without its prefix and the text appended by sbatch;
/// nullopt for messages of other origin.
std::optional<std::string> policy_message(const std::string& message);

/// The release of the libslurm that gpuq was built with: `22.05.8`.
std::string library_version();

/// An explanation if libslurm's output `message` or `code` shows that controller and libslurm are
/// of incompatible releases: both releases, as far as they are known, and the remedy. nullopt for
/// other failures.
std::optional<std::string> protocol_mismatch(int code, std::string_view message);

/// The explanation if `message` of libslurm report that munged does not respond; else nullopt.
std::optional<std::string> munge_failure(std::string_view message);

/// An error for the user: `what`, then Slurm's own message (or the code's text if there is none).
Error error_of(int code, Question question, std::string_view what, const std::string& message);

} // namespace gpuq::slurm
