// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"
#include "supervisor/descriptor.h"
#include "supervisor/ending.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpuq::supervisor {

/// NAME=VALUE texts; a later pair of the same name wins.
class Environment {
public:
    /// The calling process's.
    static Environment own();
    explicit Environment(std::vector<std::string> start)
        : m_texts(std::move(start))
    {
    }
    void set(std::string_view name, std::string_view value);
    /// Unless the user has it already.
    void set_default(std::string_view name, std::string_view value);
    void unset(std::string_view name);
    bool has(std::string_view name) const { return value(name).has_value(); }
    std::optional<std::string> value(std::string_view name) const;
    const std::vector<std::string>& texts() const { return m_texts; }

private:
    std::vector<std::string> m_texts;
};

/// Gives this process these soft limits, where the hard ones allow less, those.
void apply_limits(const SoftLimits& limits);

/// The srun that starts `argv`, below the words of `member`, as each rank of the request. What is
/// piped goes to every rank, what a person types to the first.
std::vector<std::string> srun_of_ranks(std::vector<std::string> argv, const Request& request,
                                       const std::vector<std::string>& member);

/// The program of a run: a child in a session and process group of its own, its standard streams
/// on pipes, or on a terminal of its own, which it controls: then both streams come as output()[0].
/// No other descriptor reaches it, every signal has its default meaning for it.
class Program {
public:
    struct Plan {
        std::vector<std::string> argv;
        std::vector<std::string> environment;
        std::string work_dir;
        SoftLimits limits;       ///< as far as the node's hard limits go; else the node's own
        bool with_input = false; ///< else stdin is /dev/null
        std::optional<TerminalSize> terminal; ///< set: on a terminal, with input
    };
    /// Forks. What goes wrong later, in the child, is told by report().
    static Result<Program> start(const Plan& plan);

    pid_t pid() const { return m_pid; }
    /// Ends, empty, when the program was executed; else carries why not.
    int report() const { return m_report.get(); }
    /// To be called when report() is readable; once.
    std::optional<NotStarted> read_report();

    /// Non-blocking ends of the pipes.
    std::array<Descriptor, 2>& output() { return m_output; }
    Descriptor& input() { return m_input; }

    /// To its whole process group.
    void signal(int number) const;
    /// To what runs in the foreground of its terminal as well, as when it is hung up.
    void hang_up() const;

    /// Tells the foreground of the terminal (SIGWINCH) when that is a change.
    void resize(TerminalSize size) const;
    /// Once the program has ended: the terminal ends as soon as nobody else has it open.
    void let_terminal_go() { m_terminal.reset(); }

private:
    using Streams = std::array<Descriptor, 3>; ///< the child's 0, 1 and 2
    Result<Streams> make_pipes(bool with_input);
    Result<Streams> make_terminal(TerminalSize size);

    std::vector<std::string> m_argv;
    std::string m_work_dir;
    pid_t m_pid = -1;
    Descriptor m_report, m_input;
    Descriptor m_terminal; ///< the program's side, so that the terminal stays while it runs
    std::array<Descriptor, 2> m_output;
};

} // namespace gpuq::supervisor
