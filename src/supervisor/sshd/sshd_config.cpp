// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sshd/sshd_config.h"

#include "core/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpuq::supervisor {
namespace {

constexpr std::array<std::string_view, 12> k_prefixes = {
    "SLURM_", "SLURMD_", "CUDA_", "NVIDIA_", "ROCR_",       "HIP_",
    "ZE_",    "GPU_",    "GPUQ_", "TMPDIR=", "KRB5CCNAME=", "BEARER_TOKEN_FILE="};

/// OpenSSH supports quotes, but versions differ in the meaning of a backslash within them.
bool can_be_quoted(std::string_view text)
{
    const bool plain = std::none_of(text.begin(), text.end(), [](char c) {
        return c == '"' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    });
    return plain && text.find("\\\\") == std::string_view::npos &&
           text.find("\\'") == std::string_view::npos && !text.ends_with('\\');
}

std::string set_environment(const std::vector<std::string>& environment)
{
    std::string line;
    for (const std::string& variable : environment) {
        if (can_be_quoted(variable)) {
            line += fmt::format(" \"{}\"", variable);
        }
    }
    // One line: sshd uses only the first.
    return line.empty() ? "" : "SetEnv" + line + "\n";
}

} // namespace

Result<std::string> sshd_config(const SshdSettings& settings)
{
    if (!can_be_quoted(settings.directory) || settings.directory.find('%') != std::string::npos) {
        return fail(
            Error::Kind::usage,
            fmt::format("sshd_config can't contain the directory name {}", settings.directory));
    }
    return fmt::format(R"(HostKey "{0}/{1}"
AuthorizedKeysFile "{0}/{2}"{3}
AuthenticationMethods publickey
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
HostbasedAuthentication no
AllowUsers "{4}"
PermitRootLogin prohibit-password
# The state directory may be below /tmp; gpuq has checked its modes.
StrictModes no
UsePAM no
PidFile none
UseDNS no
PrintMotd no
PrintLastLog no
LogLevel ERROR
LoginGraceTime 60
ClientAliveInterval 60
ClientAliveCountMax 5
AcceptEnv LANG LC_*
AllowTcpForwarding yes
X11Forwarding no
Subsystem sftp internal-sftp
{5})",
                       settings.directory, layout::k_connect_host_key, layout::k_connect_authorized,
                       settings.own_keys ? " %h/.ssh/authorized_keys" : "", settings.user,
                       set_environment(settings.environment));
}

std::vector<std::string>
session_environment(const std::vector<std::string>& environment,
                    const std::vector<std::pair<std::string, std::string>>& chosen)
{
    std::vector<std::string> kept;
    for (const std::string& variable : environment) {
        const bool of_the_job =
            std::any_of(k_prefixes.begin(), k_prefixes.end(),
                        [&](std::string_view prefix) { return variable.starts_with(prefix); });
        const bool is_chosen = std::any_of(chosen.begin(), chosen.end(), [&](const auto& pair) {
            return variable.starts_with(pair.first + "=");
        });
        if (of_the_job || is_chosen) {
            kept.push_back(variable);
        }
    }
    return kept;
}

} // namespace gpuq::supervisor
