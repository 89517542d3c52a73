// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "remote/libssh/library.h"
#include "remote/libssh/plan.h"
#include "remote/libssh/questions.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::remote {

/// Proves the user's identity on a session, for one login.
///
/// Methods are tried in the order of the user's configuration, as long as the host offers them.
/// Within `publickey`: files of keys that need no passphrase, the agent's keys, then files whose
/// passphrase the user is asked for. A user who is asked nothing loses nothing, so a failure before
/// the first question may be repeated by OpenSSH, which knows other means.
class Authentication {
public:
    struct Questions {
        Asker* asker = nullptr;       ///< null if no questions may be asked
        bool may_use_openssh = false; ///< no question is asked if OpenSSH may need none
        /// Shows the host's instructions; unset: they are part of the question.
        std::function<void(std::string_view)> show;
    };
    /// All arguments must outlive the object.
    Authentication(const Libssh& ssh, ssh_session session, const SshPlan& plan,
                   Questions questions);

    /// Continues after userauth_none() has returned `result`. SSH_AUTH_SUCCESS; SSH_AUTH_DENIED
    /// after all methods; otherwise the connection is broken. Blocks.
    int complete(int result);
    /// The methods that the host offers, as OpenSSH lists them: `publickey,password`.
    std::string offered() const;
    /// A means of login that only OpenSSH has, in words; empty if all were tried.
    const std::string& only_openssh() const { return m_only_openssh; }
    bool has_answered() const { return m_has_answered; } ///< the user, at least once
    bool was_asked() const { return m_has_answered || m_refused_to_answer; }

private:
    int wait(const std::function<int()>& call) const;
    int try_method(const std::string& method);
    int try_keys();
    int try_key_files();
    int try_encrypted_key_files();
    int try_encrypted(const std::string& file);
    int try_agent();
    int use(SshKey key, const std::string& certificate);
    int ask_interactively();
    int answer_round();
    int try_password();
    std::optional<std::string> ask(const std::string& text, bool echo);

    const Libssh& m_ssh;
    ssh_session m_session;
    const SshPlan& m_plan;
    Questions m_questions;
    std::size_t m_next_file = 0; ///< of plan.identities
    std::vector<std::string> m_encrypted;
    bool m_agent_tried = false;
    bool m_refused_to_answer = false;
    bool m_has_answered = false;
    int m_asked = 0;
    std::string m_only_openssh;
};

} // namespace gpuq::remote
