// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "io/descriptor.h"
#include "ports/store.h"
#include "posix/clock.h"
#include "posix/files.h"
#include "posix/host.h"
#include "posix/login_tickets.h"
#include "posix/secret_files.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// A variable of the environment of this process.
std::optional<std::string> variable_of_process(const std::string& name);
/// Whether it exists and is not empty.
bool is_variable_set(const std::string& name);

/// The interfaces of this process to its machine, each opened on first use. Those to Slurm are left
/// to the program: gpuq has them (main.cpp), the client for a laptop has not (client_main.cpp).
class Machine : public cli::Services {
public:
    Machine();

    bool is_served() const override { return static_cast<bool>(m_serve); }
    void send_to_serve(const std::string& line) const override;
    std::uint64_t mark_output() override;
    std::uint64_t marks_shown() override;
    Result<Store*> store() override;
    Result<std::string> state_dir() override;
    Host& host() override { return m_host; }
    Files& program_files() override { return m_files; }
    SecretFiles& secret_files() override { return m_secret_files; }
    LoginTickets& login_tickets() override { return m_login_tickets; }
    Clock& clock() override { return m_clock; }
    std::array<unsigned char, 8> random() override;
    std::optional<std::string> variable(const std::string& name) override;
    void forget_variable(const std::string& name) override;
    std::vector<std::string> environment() override;
    Result<std::string> program() override;
    Result<cli::TextFile> text_file(const std::string& path, std::size_t most) override;
    Result<SshKeyPair> new_ssh_key() override;
    Result<cli::Settings> settings() override;

private:
    Descriptor m_serve;
    std::uint64_t m_marks = 0, m_marks_shown = 0;
    std::uint64_t m_marks_heard = 0; ///< the number in an incomplete line so far
    std::optional<cli::Settings> m_settings;
    std::unique_ptr<Store> m_store;
    SystemClock m_clock;
    PosixHost m_host;
    PosixFiles m_files;
    PosixSecretFiles m_secret_files;
    PosixLoginTickets m_login_tickets{variable_of_process, m_host};
};

/// Makes the standard streams and the signals of this process safe for run_program. To be called
/// before anything else.
void prepare_process();

/// Runs gpuq, or the part of it that ssh calls with questions for the user; returns the exit
/// status.
int run_program(int argc, char** argv, Machine& machine);

} // namespace gpuq
