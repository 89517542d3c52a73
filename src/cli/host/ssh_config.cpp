// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/ssh_config.h"

#include "core/layout.h"
#include "core/quote.h"
#include "runs/connect_keys.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

bool is_host_name(std::string_view word)
{
    return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    });
}

/// Escapes tokens such as `%h`, which ssh would expand.
std::string without_tokens(std::string_view text)
{
    std::string result;
    for (const char c : text) {
        result += c == '%' ? "%%" : std::string(1, c);
    }
    return result;
}

} // namespace

std::vector<std::string> host_names(const SshHost& host)
{
    std::vector<std::string> names;
    for (const std::string& word : host.called) {
        std::string name = "gpuq-" + word;
        if (is_host_name(word) && std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(std::move(name));
        }
    }
    return names;
}

Result<std::string> ssh_config(const SshHost& host)
{
    if (host.state_dir.find_first_of("\"\n\\") != std::string::npos) {
        return fail(Error::Kind::usage,
                    fmt::format("ssh_config: can't quote the name of the state directory, {}",
                                host.state_dir));
    }
    for (const std::string& word : host.command) {
        if (sanitised(word) != word) {
            return fail(
                Error::Kind::usage,
                fmt::format("ssh_config: can't quote '{}' in the ProxyCommand", sanitised(word)));
        }
    }
    const auto file = [&](const char* name) {
        return without_tokens(
            fmt::format("\"{}/{}\"", host.state_dir, layout::connect_file(host.key, name)));
    };
    const std::string head =
        fmt::format("# gpuq: run {}; valid while it runs\nHost {}\n    User {}\n"
                    "    ProxyCommand {}\n    HostKeyAlias {}\n    UpdateHostKeys no\n",
                    sanitised(host.title), fmt::join(host_names(host), " "), host.user,
                    without_tokens(shell_command(host.command)), host_key_alias(host.key));
    if (host.state_dir.empty()) {
        return head + R"(    # Needs a key listed in ~/.ssh/authorized_keys on that host.
    # The host is authenticated already: gpuq connects through the login host.
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
)";
    }
    return head + fmt::format(R"(    IdentityFile {}
    IdentitiesOnly yes
    UserKnownHostsFile {}
    StrictHostKeyChecking yes
)",
                              file(layout::k_connect_identity),
                              file(layout::k_connect_known_hosts));
}

} // namespace gpuq::cli
