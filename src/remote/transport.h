// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"
#include "remote/askpass.h"
#include "remote/channel.h"
#include "remote/login_means.h"
#include "remote/reconnect_policy.h"
#include "remote/ssh_arguments.h"

#include <chrono>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpuq::remote {

/// A way to reach `gpuq serve`. The connection may break and be made again; one at a time.
class Transport {
public:
    virtual ~Transport() = default;
    struct Streams {
        std::shared_ptr<Link> link; ///< to serve, possibly not connected yet
        Descriptor errors;          ///< messages: of ssh, and of the host before gpuq has started
    };
    /// Begins what connect() needs for an attempt to reconnect and may take time. Returns a
    /// descriptor that is readable when connect() will not block; -1: now. end() gives it up.
    virtual int prepare() { return -1; }
    /// `first`: the bytes that will be sent first, for a transport that can deliver them earlier.
    virtual Result<Streams> connect(Attempt attempt, bool alone, std::string_view first) = 0;
    /// To be polled while no data has arrived. True: the shared connection that is used is dead,
    /// and a connection with `alone` can bypass it. Never true while the user may be typing a
    /// password.
    virtual bool is_stuck(Moment now)
    {
        (void)now;
        return false;
    }
    /// The user's configuration hides ssh's messages while it connects.
    virtual bool is_quiet() const { return false; }
    /// Ends the connection, by force after `milliseconds`, and returns the exit status.
    virtual int end(int milliseconds) = 0;
    /// For Attempt::asked: descriptor to poll for questions; -1: none.
    virtual pollfd questions() const { return {-1, 0, 0}; }
    virtual std::optional<Question> next_question() { return std::nullopt; }
    /// The current question is waiting for its answer, which can be given once.
    virtual bool is_asked() const { return false; }
    virtual void answer(std::string_view) {}
    /// State of everything that may allow a login without questions.
    virtual LoginState login_state() { return {}; }
    /// Interprets the end of a connection.
    virtual Verdict classify(const SshEnd& end) const = 0;
};

/// Output of an ssh that asks no questions, `ssh -G` for example, until it ends or 3 seconds have
/// passed; empty if it can't be started.
std::string printed_by_ssh(std::vector<std::string> arguments);

/// OpenSSH's client as a child process: it uses ~/.ssh/config and asks the user itself.
class SshTransport : public Transport {
public:
    /// `gpuq`: path of this program, used as ssh's askpass program; empty: no questions can be
    /// asked.
    explicit SshTransport(SshCommand command, std::string gpuq = {})
        : m_command(std::move(command))
        , m_gpuq(std::move(gpuq))
    {
    }
    ~SshTransport() override;
    SshTransport(const SshTransport&) = delete;
    SshTransport& operator=(const SshTransport&) = delete;

    Result<Streams> connect(Attempt attempt, bool alone, std::string_view first) override;
    bool is_stuck(Moment now) override;
    bool is_quiet() const override { return m_command.facts.quiet; }
    pollfd questions() const override;
    std::optional<Question> next_question() override;
    bool is_asked() const override { return m_askpass && m_askpass->is_asked(); }
    void answer(std::string_view text) override;
    LoginState login_state() override;
    int end(int milliseconds) override;
    Verdict classify(const SshEnd& end) const override;

    const SshCommand& command() const { return m_command; }
    /// The output of `ssh -G`, read once; empty if there is none. `usage` for options of ssh with
    /// which it has no standard streams.
    Result<std::string> configuration();
    /// The arguments of the `ssh -G` that prints it.
    std::vector<std::string> question() const;
    /// Replaces it, unless by an empty one: `Match exec` may depend on the network to which this
    /// machine is connected.
    void set_configuration(std::string text);

    /// A shared connection is checked after this much silence,
    static constexpr Span k_patience = std::chrono::seconds{2};
    /// must respond within this time, and is checked again after it.
    static constexpr Span k_answer = std::chrono::seconds{3};

private:
    enum class Probe { none, check, knock };
    void begin_probe(Probe probe, Moment now);
    void end_probe();

    SshCommand m_command;
    std::optional<std::string> m_configuration; ///< output of `ssh -G`
    std::string m_gpuq;
    std::optional<AskPass> m_askpass; ///< exists while ssh may ask
    std::optional<LoginMeans> m_means;
    pid_t m_pid = -1;
    Probe m_probe = Probe::none;
    pid_t m_probe_pid = -1;
    Moment m_probe_at; ///< when the probe began, or will begin
};

} // namespace gpuq::remote
