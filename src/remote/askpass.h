// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <optional>
#include <poll.h>
#include <string>
#include <string_view>

namespace gpuq::remote {

/// A question from ssh to the user: a password, a one-time code, a passphrase. `text` comes
/// unmodified from the host or from ssh, truncated to `k_longest_question` bytes.
struct Question {
    std::string text;
    bool expects_answer = true; ///< false: only a notice while ssh waits, such as to touch a key
};
inline constexpr std::size_t k_longest_question = 4096;

/// Receives ssh's questions in this process and returns the answers. For each question ssh starts
/// program() ($SSH_ASKPASS), a link to gpuq, which connects to this object through a socket in a
/// directory of mode 0700 that exists as long as the object. Works without a terminal.
class AskPass {
public:
    /// `gpuq`: path of this program. `io` when the directory cannot be created.
    static Result<AskPass> open(const std::string& gpuq);
    AskPass(AskPass&& other) noexcept;
    AskPass& operator=(AskPass&&) = delete;
    ~AskPass();

    /// Value for $SSH_ASKPASS.
    std::string program() const;
    /// Descriptor and events to poll: for a new question, or the end of the process that asked.
    int descriptor() const { return m_asker ? m_asker.get() : m_listener.get(); }
    short events() const { return m_read ? 0 : POLLIN; }
    /// Call when descriptor() is ready. Handles one question at a time; the next one waits.
    std::optional<Question> next();
    /// A question has arrived and its process is still waiting.
    bool is_asked() const { return m_asker && m_read; }
    /// Answers the current question; only once.
    void answer(std::string_view text);

    /// The other end: gpuq as started by ssh. Returns the exit status.
    static int run(const std::string& program, const std::string& question);
    /// True when `program` (argv[0]) is a result of program().
    static bool is_name(std::string_view program);

private:
    AskPass(std::string directory, Descriptor listener);

    std::string m_directory;
    Descriptor m_listener;
    Descriptor m_asker;
    bool m_read = false; ///< the question of m_asker has been read
    std::string m_text;
};

} // namespace gpuq::remote
