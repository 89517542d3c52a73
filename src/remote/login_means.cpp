// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/login_means.h"

#include "core/fnv.h"
#include "io/local_socket.h"
#include "remote/ssh_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::remote {
namespace {

std::string variable(const char* name)
{
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// Expands a path in ssh's configuration: `~/`, `$NAME`.
std::string expanded(std::string_view path)
{
    if (path.starts_with("~/")) {
        return variable("HOME") + std::string(path.substr(1));
    }
    if (path.starts_with('$')) {
        return variable(std::string(path.substr(1)).c_str());
    }
    return std::string(path);
}

std::uint64_t state_of_file(const std::string& path)
{
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) {
        return 0;
    }
    return fnv1a(fmt::format("{} {} {} {} {}", facts.st_dev, facts.st_ino, facts.st_size,
                             facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec)) |
           1;
}

/// Sends SSH_AGENTC_REQUEST_IDENTITIES, which lists the public keys, and hashes the response.
std::uint64_t state_of_agent(const std::string& socket, std::chrono::milliseconds patience)
{
    constexpr std::array<char, 5> k_request{0, 0, 0, 1, 11};
    constexpr std::size_t k_most = 256 << 10;
    const Descriptor agent = connect_to_path(socket);
    if (!agent || ::send(agent.get(), k_request.data(), k_request.size(), MSG_NOSIGNAL) !=
                      ssize_t{k_request.size()}) {
        return 0;
    }
    const auto until = std::chrono::steady_clock::now() + patience;
    const auto size_of = [](std::string_view head) {
        std::size_t size = 0;
        for (const char c : head.substr(0, 4)) {
            size = size << 8 | static_cast<unsigned char>(c);
        }
        return size;
    };
    std::string answer;
    std::array<char, 4096> buffer;
    while (answer.size() < 4 || answer.size() < 4 + std::min(size_of(answer), k_most)) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd wait{agent.get(), POLLIN, 0};
        if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) {
            return 0;
        }
        const ssize_t count = ::read(agent.get(), buffer.data(), buffer.size());
        if (count <= 0) {
            return 0;
        }
        answer.append(buffer.data(), static_cast<std::size_t>(count));
    }
    constexpr std::size_t k_without_keys = 9;
    return answer.size() <= k_without_keys ? 0 : fnv1a(answer) | 1;
}

/// Path of a credential cache that is a file; else empty.
std::string ticket_file()
{
    const std::string name = variable("KRB5CCNAME");
    constexpr std::string_view k_file = "FILE:";
    if (name.empty()) {
        return fmt::format("/tmp/krb5cc_{}", ::getuid());
    }
    if (name.starts_with(k_file)) {
        return name.substr(k_file.size());
    }
    return name.starts_with('/') ? name : "";
}

} // namespace

LoginMeans login_means_from(std::string_view configuration)
{
    LoginMeans means{{ticket_file()}, variable("SSH_AUTH_SOCK")};
    for (const auto& [keyword, text] : ssh_settings_in(configuration)) {
        const std::string value = expanded(text);
        if (value.empty() || value == "none") {
            means.agent = keyword == "identityagent" ? "" : means.agent;
        } else if (keyword == "identityagent" && value != "SSH_AUTH_SOCK") {
            means.agent = value;
        } else if (keyword == "controlpath" || keyword == "certificatefile") {
            means.files.push_back(value);
        } else if (keyword == "identityfile") {
            means.files.insert(means.files.end(), {value, value + "-cert.pub"});
        }
    }
    return means;
}

LoginState state_of(const LoginMeans& means)
{
    LoginState state{state_of_agent(means.agent, k_agent_patience)};
    std::transform(means.files.begin(), means.files.end(), std::back_inserter(state),
                   state_of_file);
    return state;
}

bool may_let_in(const LoginState& before, const LoginState& now)
{
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (now[i] != 0 && (i >= before.size() || now[i] != before[i])) {
            return true;
        }
    }
    return false;
}

bool has_keys(const std::string& socket, std::chrono::milliseconds patience)
{
    return state_of_agent(socket, patience) != 0;
}

} // namespace gpuq::remote
