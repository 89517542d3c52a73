// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/known_hosts.h"

#include "core/strings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

namespace gpuq::remote {
namespace {

constexpr std::size_t k_longest_line = 64 << 10;

/// The key of a line, if it is about the host.
std::optional<SshKey> key_in(const Libssh& ssh, const std::string& line, const std::string& host)
{
    ssh_knownhosts_entry* entry = nullptr;
    if (ssh.known_hosts_parse_line(host.c_str(), line.c_str(), &entry) != SSH_OK) {
        return std::nullopt;
    }
    SshKey key(std::exchange(entry->publickey, nullptr));
    ssh.knownhosts_entry_free(entry);
    return key;
}

void read_file(const Libssh& ssh, const std::string& file, const std::string& host,
               KnownHost& found)
{
    std::ifstream lines(file);
    std::string line;
    for (std::size_t number = 1; std::getline(lines, line); ++number) {
        std::replace(line.begin(), line.end(), '\t', ' '); // libssh knows only spaces
        const std::string_view text = trimmed(line);
        if (text.empty() || text.front() == '#' || text.size() > k_longest_line) {
            continue;
        }
        if (text.front() == '@') {
            const std::string rest(trimmed(cut(text, ' ').second));
            found.is_special = found.is_special || key_in(ssh, rest, host).has_value();
        } else if (auto key = key_in(ssh, std::string(text), host); key && *key) {
            const std::string_view names = cut(text, ' ').first;
            found.is_special = found.is_special || names.find('!') != std::string_view::npos;
            found.keys.push_back({*std::move(key), file, number});
        }
    }
}

/// True for an algorithm that signs with this type of key.
bool is_for(std::string_view algorithm, const char* type)
{
    return type != nullptr &&
           (algorithm == type || (type == std::string_view("ssh-rsa") &&
                                  (algorithm == "rsa-sha2-512" || algorithm == "rsa-sha2-256")));
}

} // namespace

KnownHost known_host(const Libssh& ssh, const SshPlan& plan)
{
    KnownHost found;
    for (const std::string& name : plan.known_as) {
        for (const std::string& file : plan.known_hosts) {
            read_file(ssh, file, name, found);
        }
        if (!found.keys.empty()) {
            found.is_without_port = name != plan.known_as.front();
            break;
        }
    }
    return found;
}

std::string preferred_host_keys(const Libssh& ssh, const SshPlan& plan, const KnownHost& known)
{
    std::vector<std::string_view> algorithms = split(plan.host_keys, ",");
    std::stable_partition(algorithms.begin(), algorithms.end(), [&](std::string_view algorithm) {
        return std::any_of(known.keys.begin(), known.keys.end(), [&](const KnownHost::Key& each) {
            return is_for(algorithm, ssh.key_type_to_char(ssh.key_type(each.key.get())));
        });
    });
    return fmt::format("{}", fmt::join(algorithms, ","));
}

HostKeyCheck check_host_key(const Libssh& ssh, const KnownHost& known, const SshKey& key)
{
    HostKeyCheck check;
    for (const KnownHost::Key& each : known.keys) {
        if (ssh.key_cmp(each.key.get(), key.get(), SSH_KEY_CMP_PUBLIC) == 0) {
            return {HostKeyCheck::Is::known, ""};
        }
        if (!known.is_without_port && ssh.key_type(each.key.get()) == ssh.key_type(key.get())) {
            check = {HostKeyCheck::Is::changed, fmt::format("{}:{}", each.file, each.line)};
        }
    }
    return check;
}

} // namespace gpuq::remote
