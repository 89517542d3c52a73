// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"
#include "io/subprocess.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/base/ending.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpuq::supervisor {

/// NAME=VALUE texts; if a name is set twice, the later value is used.
class Environment {
public:
    /// The calling process's environment.
    static Environment own();
    explicit Environment(std::vector<std::string> start)
        : m_texts(std::move(start))
    {
    }
    void set(std::string_view name, std::string_view value);
    /// Sets the variable unless it already has a value.
    void set_default(std::string_view name, std::string_view value);
    void unset(std::string_view name);
    bool has(std::string_view name) const { return value(name).has_value(); }
    std::optional<std::string> value(std::string_view name) const;
    const std::vector<std::string>& texts() const { return m_texts; }

private:
    std::vector<std::string> m_texts;
};

/// For Subprocess::limits.
std::vector<std::pair<int, rlim_t>> as_resources(const SoftLimits& limits);

/// The srun command that starts `argv`, preceded by the arguments in `member`, as each rank of the
/// request. Piped input goes to every rank, typed input to the first.
std::vector<std::string> srun_of_ranks(std::vector<std::string> argv, const Request& request,
                                       const std::vector<std::string>& member);

/// The program of a run: a child in its own session and process group. Its standard streams are
/// pipes or its own controlling terminal; with a terminal, both output streams arrive as
/// output()[0]. It inherits no other descriptor, and every signal has its default action.
class Program {
public:
    struct Plan {
        std::vector<std::string> argv;
        std::vector<std::string> environment;
        std::string work_dir;
        SoftLimits limits;       ///< applied as far as the node's hard limits allow; unset: the
                                 ///< node's own
        bool with_input = false; ///< false: stdin is /dev/null
        std::optional<TerminalSize> terminal; ///< set: run on a terminal, with input
    };
    /// Forks. Errors that occur later, in the child, are reported through report().
    static Result<Program> start(const Plan& plan);

    pid_t pid() const { return m_process.pid; }
    /// Reaches end of file without data once the program was executed; otherwise carries the
    /// reason.
    int report() const { return m_process.report.get(); }
    /// Call once, when report() is readable.
    std::optional<NotStarted> read_report();

    /// The non-blocking ends of the pipes.
    std::array<Descriptor, 2>& output() { return m_output; }
    Descriptor& input() { return m_input; }

    /// Sends a signal to its whole process group.
    void signal(int number) const;
    /// Sends a hangup, also to the foreground process group of its terminal.
    void hang_up() const;

    /// Sets the terminal's size. A change sends SIGWINCH to its foreground process group.
    void resize(TerminalSize size) const;
    /// Call once the program has ended: the terminal closes as soon as no other process has it
    /// open.
    void let_terminal_go() { m_terminal.reset(); }

private:
    using Streams = std::array<Descriptor, 3>; ///< the child's 0, 1 and 2
    Result<Streams> make_pipes(bool with_input);
    Result<Streams> make_terminal(TerminalSize size);

    std::vector<std::string> m_argv;
    std::string m_work_dir;
    Spawned m_process;
    Descriptor m_input;
    Descriptor m_terminal; ///< the program's side, held so that the terminal stays open while the
                           ///< program runs
    std::array<Descriptor, 2> m_output;
};

} // namespace gpuq::supervisor
