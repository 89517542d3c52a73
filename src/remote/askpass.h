// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <optional>
#include <poll.h>
#include <string>
#include <string_view>

namespace gpuq::remote {

/// What ssh asks the user: a password, a one-time code, a passphrase. `text` is the host's, or
/// ssh's, as it came: at most `k_longest_question` bytes of it.
struct Question {
    std::string text;
    bool wants_answer = true; ///< false: something to know while it waits, such as to touch a key
};
inline constexpr std::size_t k_longest_question = 4096;

/// Brings ssh's questions to this process and the answers back. ssh starts program(), which is gpuq
/// under another name, for each question ($SSH_ASKPASS); it talks to this object through a socket
/// in a directory of mode 0700 that only lives as long as this object. No terminal is needed for
/// that.
class AskPass {
public:
    /// `gpuq`: the path of the program. `io` when there is no place for the directory.
    static Result<AskPass> open(const std::string& gpuq);
    AskPass(AskPass&& other) noexcept;
    AskPass& operator=(AskPass&&) = delete;
    ~AskPass();

    /// For $SSH_ASKPASS.
    std::string program() const;
    /// To poll for these events: a question comes, or what has asked is gone.
    int descriptor() const { return m_asker ? m_asker.get() : m_listener.get(); }
    short events() const { return m_read ? 0 : POLLIN; }
    /// To be called when descriptor() is ready. One question at a time; the next one waits.
    std::optional<Question> next();
    /// A question has come and still waits.
    bool is_asked() const { return m_asker && m_read; }
    /// To the present question, once.
    void answer(std::string_view text);

    /// The other end: `gpuq` as ssh starts it. Its exit status.
    static int run(const std::string& program, const std::string& question);
    /// True when `program` (argv[0]) is what program() gives.
    static bool is_name(std::string_view program);

private:
    AskPass(std::string folder, Descriptor listener);

    std::string m_folder;
    Descriptor m_listener;
    Descriptor m_asker;
    bool m_read = false; ///< the question of m_asker
    std::string m_text;
};

} // namespace gpuq::remote
