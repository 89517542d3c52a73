// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/descriptor.h"

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// Finds a program in a PATH and returns its absolute path; relative directories are ignored.
/// Empty: not found.
std::string found_in_path(const std::string& path, const std::string& program);
/// The absolute path of kinit on this node; empty: none.
std::string kinit_of_node();
constexpr const char* k_no_kinit = "there is no kinit on this node";
/// This process's environment, with LC_ALL=C, because kinit's messages are parsed, and with this
/// credential cache.
std::vector<std::string> in_english(const std::string& cache);
/// Converts a program's output to one line for users, without control characters.
std::string one_line(std::string message);

/// A program that runs in the background: executed by its absolute path, without a shell or input,
/// and killed when its time limit expires or this process ends. Its output is kept, up to a limit.
class External {
public:
    struct Plan {
        std::vector<std::string> argv;
        std::vector<std::string> environment; ///< NAME=VALUE; the complete environment
        std::chrono::milliseconds limit{5000};
    };
    /// Nullopt if no process could be created.
    static std::optional<External> start(const Plan& plan);
    External(External&&) = default;
    External& operator=(External&&) = default;
    ~External();

    /// Readable when there is output to read.
    int fd() const { return m_output.get(); }
    std::chrono::steady_clock::time_point until() const { return m_until; }

    struct Ended {
        int status = 0; ///< 128+N for signal N
        bool in_time = true;
        std::string message;
    };
    /// Reads available output. Nullopt while the program runs.
    std::optional<Ended> try_finish();

private:
    External() = default;
    pid_t m_pid = -1;
    Descriptor m_output;
    std::chrono::steady_clock::time_point m_until;
    std::string m_message;
    bool m_silent = false, m_killed = false;
};

/// Runs a program and waits for its end. Nullopt if no process could be created.
std::optional<External::Ended> finished(const External::Plan& plan);

} // namespace gpuq::supervisor
