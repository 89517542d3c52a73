// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"
#include "remote/ssh_words.h"

#include <optional>
#include <string>
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
    virtual Result<Streams> connect(Attempt attempt, bool alone) = 0;
    /// Ends what connect() began, by force if it goes on for so long, and says how it ended.
    virtual int end(int milliseconds) = 0;
    /// What an end with these words means.
    virtual Verdict judge(int status, std::string_view errors) const = 0;
};

/// OpenSSH's client as a child process: what ~/.ssh/config says holds, and it asks people itself.
class SshTransport : public Transport {
public:
    explicit SshTransport(SshCommand command)
        : m_command(std::move(command))
    {
    }
    ~SshTransport() override { end(0); }
    SshTransport(const SshTransport&) = delete;
    SshTransport& operator=(const SshTransport&) = delete;

    Result<Streams> connect(Attempt attempt, bool alone) override;
    int end(int milliseconds) override;
    Verdict judge(int status, std::string_view errors) const override;

private:
    SshCommand m_command;
    pid_t m_pid = -1;
};

} // namespace gpuq::remote
