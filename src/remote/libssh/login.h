// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "remote/libssh/library.h"
#include "remote/libssh/plan.h"
#include "remote/libssh/questions.h"
#include "remote/libssh/relay.h"
#include "remote/ssh_arguments.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace gpuq::remote {

class Authentication;

struct LoginFailure {
    Verdict verdict;
    /// Why OpenSSH may succeed, or must deal with the user: to follow "OpenSSH, since". Empty: it
    /// would fail as well.
    std::string openssh_because;
    bool is_of_proxy = false; ///< the ProxyCommand ended before the host's greeting
};

/// A connection to a host and a login on it, by the means in its plan. For a single use, by a
/// thread of its own: name services, Kerberos, a key agent and the user may take any time.
class SshLogin {
public:
    /// `jump`: a login on a jump host that forwards to this one; null: none. `socket`: connected to
    /// the host's ssh server by a ProxyCommand; none: connects over TCP. `forwards_to`: set if this
    /// is a jump host.
    /// `messages`: receives the host's messages before and during the login; nothing blocks on it.
    /// `asker`: null if no questions may be asked. A login that OpenSSH can complete without
    /// questions asks none.
    struct Request {
        SshCommand command; ///< host, attempt, interactive
        SshPlan plan;
        std::unique_ptr<SshLogin> jump;
        Descriptor socket;
        struct Target {
            std::string host;
            std::uint16_t port = 0;
        };
        std::optional<Target> forwards_to;
        Descriptor messages;
        std::shared_ptr<Asker> asker;
        bool may_use_openssh = false; ///< if this login fails
    };
    SshLogin(const Libssh& ssh, Request request);

    /// Blocks.
    std::variant<LoggedIn, LoginFailure> run();
    /// Makes run() fail soon, unless it waits for a name server or a KDC. Any thread.
    void cancel();
    Asker* asker() { return m_request.asker.get(); }
    /// When its session is closed: waits at most this long for the threads of jump hosts.
    void wait_for_relays(int milliseconds) const;

private:
    using Failed = std::optional<LoginFailure>;

    Failed connect();
    Failed connect_by_jump();
    Failed connect_over_tcp();
    bool connect_to(const struct addrinfo& address, std::string& why_not);
    Failed begin_session();
    bool set(ssh_options_e option, const void* value);
    Failed set_options();
    Failed check_host();
    Failed log_in();
    void connect_agent();
    Failed open_channel(ssh_channel& channel);
    Failed denied(const Authentication& authentication);
    Failed broken(std::string_view reason);
    Failed needs_openssh(std::string reason, Error error);

    void show(std::string_view text);
    std::string error_text() const;

    const Libssh& m_ssh;
    Request m_request;
    const SshPlan& m_plan;
    SshSession m_session;
    std::shared_ptr<Descriptor> m_relay_done; ///< of the jump host
    bool m_has_greeting = false;              ///< the host has shown its key

    std::mutex m_mutex;     ///< for:
    Descriptor m_to_cancel; ///< the socket
    Descriptor m_agent_to_cancel;
    std::atomic<bool> m_cancelled{false};
    Descriptor m_cancel_event;
};

} // namespace gpuq::remote
