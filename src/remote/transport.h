// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"
#include "remote/askpass.h"
#include "remote/lifeline.h"
#include "remote/login_means.h"
#include "remote/ssh_words.h"

#include <chrono>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpuq::remote {

/// A way to `gpuq serve`, which may break and be made again. One connection at a time.
class Transport {
public:
    virtual ~Transport() = default;
    struct Streams {
        Descriptor in; ///< what comes
        Descriptor out;
        Descriptor errors;
    };
    /// `first`: the bytes that will be sent first, for a transport that can bring them earlier.
    virtual Result<Streams> connect(Attempt attempt, bool alone, std::string_view first) = 0;
    /// To be asked again and again while nothing has come. True: what it goes through is dead, and
    /// connecting alone goes past it. Never while a person may be typing a password.
    virtual bool is_stuck(Moment now)
    {
        (void)now;
        return false;
    }
    /// The user does not want to see what it says while it connects.
    virtual bool is_quiet() const { return false; }
    /// Ends what connect() began, by force if it goes on for so long, and says how it ended.
    virtual int end(int milliseconds) = 0;
    /// Of Attempt::asked: what to poll for questions; none: descriptor -1.
    virtual pollfd questions() const { return {-1, 0, 0}; }
    virtual std::optional<Question> next_question() { return std::nullopt; }
    /// The present question still waits for an answer, which is given once.
    virtual bool is_asked() const { return false; }
    virtual void answer(std::string_view) {}
    /// Of what may let in without questions.
    virtual LoginState login_state() { return {}; }
    /// What an end with these words means.
    virtual Verdict judge(const SshEnd& end) const = 0;
};

/// OpenSSH's client as a child process: what ~/.ssh/config says holds, and it asks people itself.
class SshTransport : public Transport {
public:
    /// `gpuq`: the path of this program, which asks for ssh; empty: nobody is asked again.
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
    Verdict judge(const SshEnd& end) const override;

    /// A shared connection is looked at after so long without a word,
    static constexpr Span k_patience = std::chrono::seconds{2};
    /// has so long to answer, and is looked at again.
    static constexpr Span k_answer = std::chrono::seconds{3};

private:
    enum class Probe { none, check, knock };
    Result<void> learn();
    void begin_probe(Probe probe, Moment now);
    void end_probe();

    SshCommand m_command;
    bool m_learned = false;
    std::string m_gpuq;
    std::optional<AskPass> m_askpass; ///< while it may ask
    std::optional<LoginMeans> m_means;
    pid_t m_pid = -1;
    Probe m_probe = Probe::none;
    pid_t m_probe_pid = -1;
    Moment m_probe_at; ///< begun, or to be begun
};

} // namespace gpuq::remote
