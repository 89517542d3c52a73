// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/descriptor.h"

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// The absolute path of a program by a PATH; relative folders in it don't count. Empty: none.
std::string found_in_path(const std::string& path, const std::string& program);
/// kinit's absolute path on this node; empty: there is none.
std::string kinit_of_node();
constexpr const char* k_no_kinit = "there is no kinit on this node";
/// This process's environment, in English and with these tickets: what kinit says is read.
std::vector<std::string> in_english(const std::string& cache);
/// What a program has said, in one line for people, without control characters.
std::string one_line(std::string words);

/// A program that is not waited for: executed by its absolute path, without a shell, without
/// input, killed when its time is over or this process ends. What it prints is kept, to a limit.
class External {
public:
    struct Plan {
        std::vector<std::string> argv;
        std::vector<std::string> environment; ///< NAME=VALUE, all it gets
        std::chrono::milliseconds limit{5000};
    };
    /// Nothing when there is no process to be had.
    static std::optional<External> start(const Plan& plan);
    External(External&&) = default;
    External& operator=(External&&) = default;
    ~External();

    /// Readable when there is something to take.
    int fd() const { return m_said.get(); }
    std::chrono::steady_clock::time_point until() const { return m_until; }

    struct Ended {
        int status = 0; ///< 128+N for signal N
        bool in_time = true;
        std::string words;
    };
    /// Takes what is there; nothing while it goes on.
    std::optional<Ended> look();

private:
    External() = default;
    pid_t m_pid = -1;
    Descriptor m_said;
    std::chrono::steady_clock::time_point m_until;
    std::string m_words;
    bool m_silent = false, m_killed = false;
};

/// Executes one and waits until it has ended. Nothing: there is no process to be had.
std::optional<External::Ended> finished(const External::Plan& plan);

} // namespace gpuq::supervisor
