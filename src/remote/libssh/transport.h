// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "remote/libssh/connection.h"
#include "remote/libssh/plan.h"
#include "remote/transport.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::remote {

/// The setting `transport`.
enum class TransportChoice {
    automatic, ///< libssh wherever it can do what the user's ssh configuration wants, else OpenSSH
    libssh,
    openssh,
};

/// Reaches a host by libssh or by OpenSSH's client, decided for each connection.
class HostTransport : public Transport {
public:
    HostTransport(TransportChoice choice, SshCommand command, std::string gpuq);
    ~HostTransport() override;

    int prepare() override;
    Result<Streams> connect(Attempt attempt, bool alone, std::string_view first) override;
    bool is_stuck(Moment now) override;
    bool is_quiet() const override { return m_openssh.is_quiet(); }
    pollfd questions() const override;
    std::optional<Question> next_question() override;
    bool is_asked() const override;
    void answer(std::string_view text) override;
    LoginState login_state() override { return m_openssh.login_state(); }
    int end(int milliseconds) override;
    Verdict classify(const SshEnd& end) const override;

    /// What carries the latest connection: `libssh 0.10.6`, or `OpenSSH, since ...`.
    std::string description() const;

private:
    /// The hosts of a connection by libssh: jump hosts, the nearest one first, and the host itself.
    struct Stop {
        std::string name; ///< for messages
        SshPlan plan;
    };
    using Way = std::vector<Stop>;
    struct Asking;
    std::string printed_for(const std::vector<std::string>& question);
    void take_answers();
    /// `missing`: why libssh is not possible.
    Result<Way> plan(Attempt attempt, bool alone);
    Result<void> add_hops(const std::string& proxy_jump, Way& way);
    Result<Streams> connect_by_libssh(Way way, Attempt attempt, std::string_view first);
    Result<Descriptor> start_proxy(const SshPlan& plan, Attempt attempt, int errors);
    void end_proxy();
    QuestionBox* questions_of_libssh() const;

    TransportChoice m_choice;
    SshTransport m_openssh;
    /// Output of `ssh -G` for all hosts, by its arguments.
    std::map<std::vector<std::string>, std::string> m_configurations;
    std::shared_ptr<Asking> m_asking; ///< from prepare() to connect()
    std::string m_openssh_because;    ///< set: for all later connections
    std::string m_why_not_libssh;     ///< of the latest connection; empty: it is by libssh
    std::shared_ptr<LibsshConnection> m_connection;
    pid_t m_proxy = -1;
    Attempt m_attempt = Attempt::first;
};

} // namespace gpuq::remote
