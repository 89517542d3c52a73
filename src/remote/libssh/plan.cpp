// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/plan.h"

#include "core/strings.h"
#include "remote/ssh_facts.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

namespace gpuq::remote {
namespace {

Error needs_openssh(std::string reason)
{
    return fail(Error::Kind::missing, std::move(reason));
}

/// The settings by keyword, in order.
class Configuration {
public:
    explicit Configuration(std::string_view text)
    {
        for (const SshSetting& setting : ssh_settings_in(text)) {
            m_values[setting.keyword].push_back(setting.value);
        }
    }
    /// The first value; empty if there is none, or "none".
    std::string_view value(std::string_view keyword) const
    {
        const auto& all = values(keyword);
        return all.empty() || all.front() == "none" ? std::string_view() : all.front();
    }
    const std::vector<std::string_view>& values(std::string_view keyword) const
    {
        static const std::vector<std::string_view> k_no_values;
        const auto found = m_values.find(keyword);
        return found == m_values.end() ? k_no_values : found->second;
    }
    bool is_on(std::string_view keyword) const
    {
        const std::string_view text = value(keyword);
        return text == "yes" || text == "true";
    }
    bool is_off(std::string_view keyword) const
    {
        const std::string_view text = value(keyword);
        return text.empty() || text == "no" || text == "false";
    }
    template <typename Number>
    std::optional<Number> number(std::string_view keyword) const
    {
        const std::string_view text = value(keyword);
        Number number{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc() || end != text.data() + text.size()) {
            return std::nullopt;
        }
        return number;
    }

private:
    std::map<std::string_view, std::vector<std::string_view>> m_values;
};

/// A setting that libssh cannot follow, with the name that users know. It must be off or absent.
struct Unsupported {
    std::string_view keyword, name;
};

constexpr std::array k_unsupported = {
    Unsupported{"controlmaster", "ControlMaster"},
    Unsupported{"pkcs11provider", "PKCS11Provider"},
    Unsupported{"proxyusefdpass", "ProxyUseFdpass"},
    Unsupported{"knownhostscommand", "KnownHostsCommand"},
    Unsupported{"revokedhostkeys", "RevokedHostKeys"},
    Unsupported{"verifyhostkeydns", "VerifyHostKeyDNS"},
    Unsupported{"checkhostip", "CheckHostIP"},
    Unsupported{"nohostauthenticationforlocalhost", "NoHostAuthenticationForLocalhost"},
    Unsupported{"gssapikeyexchange", "GSSAPIKeyExchange"},
    Unsupported{"gssapitrustdns", "GSSAPITrustDns"},
    Unsupported{"gssapiclientidentity", "GSSAPIClientIdentity"},
    Unsupported{"gssapiserveridentity", "GSSAPIServerIdentity"},
    Unsupported{"gssapirenewalforcesrekey", "GSSAPIRenewalForcesRekey"},
    Unsupported{"hostbasedauthentication", "HostbasedAuthentication"},
    Unsupported{"forwardagent", "ForwardAgent"},
    Unsupported{"addkeystoagent", "AddKeysToAgent"},
    Unsupported{"bindaddress", "BindAddress"},
    Unsupported{"bindinterface", "BindInterface"},
    Unsupported{"setenv", "SetEnv"},
};

/// The locale is not sent: the environment of a run is that of the login host.
bool is_locale(std::string_view pattern)
{
    return pattern == "LANG" || pattern == "LANGUAGE" || pattern.starts_with("LC_");
}

std::optional<std::string> unsupported_in(const Configuration& configuration)
{
    for (const Unsupported& each : k_unsupported) {
        if (!configuration.is_off(each.keyword)) {
            return std::string(each.name);
        }
    }
    const auto& sent = configuration.values("sendenv");
    if (!std::all_of(sent.begin(), sent.end(), is_locale)) {
        return "SendEnv";
    }
    const std::string_view provider = configuration.value("securitykeyprovider");
    if (!provider.empty() && provider != "internal") {
        return "SecurityKeyProvider";
    }
    return std::nullopt;
}

/// A path in the output of `ssh -G`; nullopt if it contains something that only ssh can expand.
std::optional<std::string> path_in(std::string_view text, const PlanSources& sources)
{
    if (text.find('%') != std::string_view::npos || text.find("${") != std::string_view::npos ||
        (text.starts_with('~') && !text.starts_with("~/"))) {
        return std::nullopt;
    }
    return text.starts_with('~') ? sources.home + std::string(text.substr(1)) : std::string(text);
}

Result<void> add_paths(std::vector<std::string>& paths, const std::vector<std::string_view>& texts,
                       const PlanSources& sources)
{
    for (const std::string_view text : texts) {
        if (text == "none") {
            continue;
        }
        const auto path = path_in(text, sources);
        if (!path) {
            return needs_openssh(fmt::format("the path {}", sanitised(text)));
        }
        paths.push_back(*path);
    }
    return {};
}

/// ProxyCommand with its tokens expanded.
Result<std::string> expanded_command(std::string_view text, const SshPlan& plan,
                                     const PlanSources& sources)
{
    std::string command;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            command += text[i];
            continue;
        }
        const char token = ++i < text.size() ? text[i] : '\0';
        switch (token) {
        case 'h':
            command += plan.host;
            break;
        case 'p':
            command += std::to_string(plan.port);
            break;
        case 'r':
            command += plan.user;
            break;
        case 'n':
            command += sources.destination;
            break;
        case '%':
            command += '%';
            break;
        default:
            return needs_openssh("a token in ProxyCommand");
        }
    }
    return command;
}

/// Only names that every shell takes literally reach a ProxyCommand, as in OpenSSH since 9.6.
bool is_plain_name(std::string_view text)
{
    constexpr std::string_view k_others = "._-:%@+[]";
    return !text.empty() && text.front() != '-' &&
           std::all_of(text.begin(), text.end(), [&](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      k_others.find(c) != std::string_view::npos;
           });
}

/// The names in known_hosts, as OpenSSH searches them.
std::vector<std::string> names_of(const SshPlan& plan, std::string_view alias)
{
    constexpr std::uint16_t k_default_port = 22;
    std::string name(alias.empty() ? std::string_view(plan.host) : alias);
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (!alias.empty() || plan.port == k_default_port) {
        return {name};
    }
    return {fmt::format("[{}]:{}", name, plan.port), name};
}

std::vector<std::string> methods_in(const Configuration& configuration)
{
    struct Method {
        std::string_view name, keyword;
    };
    static constexpr std::array k_methods = {
        Method{"gssapi-with-mic", "gssapiauthentication"},
        Method{"publickey", "pubkeyauthentication"},
        Method{"keyboard-interactive", "kbdinteractiveauthentication"},
        Method{"password", "passwordauthentication"}};
    std::string_view order = configuration.value("preferredauthentications");
    if (order.empty()) {
        order = "gssapi-with-mic,publickey,keyboard-interactive,password";
    }
    std::vector<std::string> methods;
    for (const std::string_view name : split(order, ",")) {
        const auto* const known =
            std::find_if(k_methods.begin(), k_methods.end(),
                         [&](const Method& method) { return method.name == name; });
        if (known != k_methods.end() && !configuration.is_off(known->keyword)) {
            methods.emplace_back(name);
        }
    }
    return methods;
}

Result<void> read_destination(SshPlan& plan, const Configuration& configuration,
                              const PlanSources& sources)
{
    const auto port = configuration.number<std::uint16_t>("port");
    plan.host = configuration.value("hostname");
    plan.user = configuration.value("user");
    if (plan.host.empty() || plan.user.empty() || !port || *port == 0) {
        return needs_openssh("ssh -G has printed no destination");
    }
    plan.port = *port;
    const std::string_view family = configuration.value("addressfamily");
    plan.family = family == "inet"    ? SshPlan::Family::ipv4
                  : family == "inet6" ? SshPlan::Family::ipv6
                                      : SshPlan::Family::any;
    if (const auto limit = configuration.number<int>("connecttimeout"); limit && *limit > 0) {
        plan.connect_timeout = std::min(plan.connect_timeout, std::chrono::seconds(*limit));
    }
    const std::string_view command = configuration.value("proxycommand");
    if (!command.empty()) {
        if (!is_plain_name(plan.host) || !is_plain_name(plan.user)) {
            return needs_openssh("a ProxyCommand for an unusual name");
        }
        TRY_ASSIGN(plan.proxy_command, expanded_command(command, plan, sources));
    }
    plan.proxy_jump = configuration.value("proxyjump");
    plan.control_path = configuration.value("controlpath");
    return {};
}

Result<void> read_host_keys(SshPlan& plan, const Configuration& configuration,
                            const PlanSources& sources)
{
    plan.known_as = names_of(plan, configuration.value("hostkeyalias"));
    for (const std::string_view keyword : {"userknownhostsfile", "globalknownhostsfile"}) {
        for (const std::string_view files : configuration.values(keyword)) {
            TRY(add_paths(plan.known_hosts, split(files, " "), sources));
        }
    }
    const std::string_view strict = configuration.value("stricthostkeychecking");
    constexpr int k_default_bits = 1024;
    const int bits = configuration.number<int>("requiredrsasize").value_or(k_default_bits);
    plan.key_rules.least_rsa_bits = bits > k_default_bits ? bits : 0;
    plan.key_rules.takes_changed = strict == "no" || strict == "off" || strict == "false";
    return {};
}

Result<void> read_login(SshPlan& plan, const Configuration& configuration,
                        const PlanSources& sources)
{
    plan.methods = methods_in(configuration);
    TRY(add_paths(plan.identities, configuration.values("identityfile"), sources));
    TRY(add_paths(plan.certificates, configuration.values("certificatefile"), sources));
    plan.identities_only = configuration.is_on("identitiesonly");
    plan.agent = sources.agent;
    const auto& agents = configuration.values("identityagent");
    if (!agents.empty() && agents.front() != "SSH_AUTH_SOCK") {
        std::vector<std::string> paths;
        TRY(add_paths(paths, agents, sources));
        plan.agent = paths.empty() ? "" : paths.front();
    }
    if (plan.agent.starts_with('$')) {
        return needs_openssh("IdentityAgent");
    }
    plan.delegates = configuration.is_on("gssapidelegatecredentials");
    plan.batch = configuration.is_on("batchmode");
    plan.tries =
        std::clamp(configuration.number<int>("numberofpasswordprompts").value_or(plan.tries), 1, 9);
    return {};
}

} // namespace

Result<std::vector<Hop>> hops_in(std::string_view proxy_jump)
{
    std::vector<Hop> hops;
    for (const std::string_view text : split(proxy_jump, ",")) {
        const std::size_t at = text.rfind('@');
        Hop hop;
        std::string_view place = text;
        if (at != std::string_view::npos) {
            hop.user = text.substr(0, at);
            place = text.substr(at + 1);
        }
        const std::size_t bracket = place.find(']');
        const std::size_t colon =
            place.find(':', place.starts_with('[') && bracket < place.size() ? bracket : 0);
        if (colon != std::string_view::npos) {
            hop.port = place.substr(colon + 1);
            place = place.substr(0, colon);
        }
        hop.host = place.starts_with('[') && place.ends_with(']')
                       ? place.substr(1, place.size() - 2)
                       : place;
        const bool is_number = std::all_of(hop.port.begin(), hop.port.end(),
                                           [](char c) { return c >= '0' && c <= '9'; });
        if (!is_plain_name(hop.host) || !is_number || (at == 0) ||
            (!hop.user.empty() && !is_plain_name(hop.user))) {
            return needs_openssh(fmt::format("the ProxyJump {}", sanitised(text)));
        }
        hops.push_back(std::move(hop));
    }
    return hops;
}

Result<SshPlan> plan_from(std::string_view text, const PlanSources& sources)
{
    const Configuration configuration(text);
    if (auto name = unsupported_in(configuration)) {
        return needs_openssh(fmt::format("libssh does not support {}", *name));
    }
    SshPlan plan;
    TRY(read_destination(plan, configuration, sources));
    TRY(read_host_keys(plan, configuration, sources));
    TRY(read_login(plan, configuration, sources));
    plan.key_exchange = configuration.value("kexalgorithms");
    plan.host_keys = configuration.value("hostkeyalgorithms");
    plan.ciphers = configuration.value("ciphers");
    plan.macs = configuration.value("macs");
    plan.user_keys = configuration.value("pubkeyacceptedalgorithms");
    plan.compression = configuration.is_on("compression");
    return plan;
}

} // namespace gpuq::remote
