// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/authentication.h"

#include "remote/login_means.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

constexpr int k_most_rounds = 12;    ///< successful parts of a login, and rounds of questions
constexpr int k_most_questions = 30; ///< in a login
constexpr std::string_view k_certificate = "-cert.pub";

struct Method {
    std::string_view name;
    int bit;
};
constexpr std::array k_methods = {
    Method{"gssapi-with-mic", SSH_AUTH_METHOD_GSSAPI_MIC},
    Method{"publickey", SSH_AUTH_METHOD_PUBLICKEY},
    Method{"keyboard-interactive", SSH_AUTH_METHOD_INTERACTIVE},
    Method{"password", SSH_AUTH_METHOD_PASSWORD},
    Method{"hostbased", SSH_AUTH_METHOD_HOSTBASED},
};

int bit_of(std::string_view name)
{
    const auto* const found = std::find_if(k_methods.begin(), k_methods.end(),
                                           [&](const Method& each) { return each.name == name; });
    return found == k_methods.end() ? 0 : found->bit;
}

/// As OpenSSH lists them: `publickey,password`.
std::string names_of(int bits)
{
    std::vector<std::string_view> names;
    for (const Method& each : k_methods) {
        if ((bits & each.bit) != 0) {
            names.push_back(each.name);
        }
    }
    return fmt::format("{}", fmt::join(names, ","));
}

void wipe(std::string& text)
{
    ::explicit_bzero(text.data(), text.size());
    text.clear();
}

bool exists(const std::string& file)
{
    return ::access(file.c_str(), R_OK) == 0;
}

/// As OpenSSH demands it: nobody else may read a private key.
bool is_private(const std::string& file)
{
    struct stat facts {};
    return ::stat(file.c_str(), &facts) == 0 &&
           (facts.st_uid != ::getuid() || (facts.st_mode & (S_IRWXG | S_IRWXO)) == 0);
}

/// True if the public key beside a private one is on a security key.
bool is_security_key(const std::string& file)
{
    std::string kind;
    return static_cast<bool>(std::ifstream(file + ".pub") >> kind) && kind.starts_with("sk-");
}

/// True if a file is a private key with a passphrase.
bool is_encrypted(const std::string& file)
{
    // The beginning of "openssh-key-v1" and of the name of a cipher, `none`, in Base64.
    constexpr std::string_view k_without_cipher = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU";
    std::array<char, 4096> buffer;
    std::ifstream in(file);
    in.read(buffer.data(), buffer.size());
    const std::string_view text(buffer.data(), static_cast<std::size_t>(in.gcount()));
    const auto has = [text](std::string_view part) {
        return text.find(part) != std::string_view::npos;
    };
    const bool result = has("BEGIN OPENSSH PRIVATE KEY") ? !has(k_without_cipher)
                                                         : has("PRIVATE KEY") && has("ENCRYPTED");
    ::explicit_bzero(buffer.data(), buffer.size());
    return result;
}

} // namespace

Authentication::Authentication(const Libssh& ssh, ssh_session session, const SshPlan& plan,
                               Questions questions)
    : m_ssh(ssh)
    , m_session(session)
    , m_plan(plan)
    , m_questions(std::move(questions))
{
}

/// The response to a method of authentication.
int Authentication::wait(const std::function<int()>& call) const
{
    return repeated(m_ssh, m_session, call);
}

std::string Authentication::offered() const
{
    return names_of(m_ssh.userauth_list(m_session, nullptr));
}

int Authentication::complete(int result)
{
    for (int round = 0; result == SSH_AUTH_DENIED || result == SSH_AUTH_PARTIAL; ++round) {
        result = SSH_AUTH_DENIED;
        for (const std::string& method : m_plan.methods) {
            const int offered = m_ssh.userauth_list(m_session, nullptr);
            if ((offered & bit_of(method)) != 0 && !m_refused_to_answer) {
                result = try_method(method);
            }
            if (result != SSH_AUTH_DENIED) {
                break;
            }
        }
        if (result == SSH_AUTH_DENIED || round >= k_most_rounds) {
            return SSH_AUTH_DENIED;
        }
    }
    return result;
}

/// SSH_AUTH_ERROR: the connection is broken.
int Authentication::try_method(const std::string& method)
{
    return method == "gssapi-with-mic" ? wait([&] { return m_ssh.userauth_gssapi(m_session); })
           : method == "publickey"     ? try_keys()
           : method == "keyboard-interactive" ? ask_interactively()
                                              : try_password();
}

int Authentication::try_keys()
{
    for (const auto source : {&Authentication::try_key_files, &Authentication::try_agent,
                              &Authentication::try_encrypted_key_files}) {
        if (const int result = (this->*source)(); result != SSH_AUTH_DENIED) {
            return result;
        }
    }
    return SSH_AUTH_DENIED;
}

/// Each file is used once in a login: a host that wants two keys wants different ones.
int Authentication::try_key_files()
{
    while (m_next_file < m_plan.identities.size()) {
        const std::string& file = m_plan.identities[m_next_file++];
        if (!exists(file)) {
            // Its private part may be in the agent, which libssh cannot ask for a single key.
            m_only_openssh = m_plan.identities_only && exists(file + ".pub")
                                 ? "IdentitiesOnly selects a key of the agent"
                                 : m_only_openssh;
            continue;
        }
        if (is_security_key(file)) {
            m_only_openssh = "a security key may be needed";
            continue;
        }
        if (!is_private(file)) {
            m_only_openssh = "it refuses a key file that others may read";
            continue;
        }
        std::vector<std::string> certificates = m_plan.certificates;
        certificates.push_back(file + std::string(k_certificate));
        certificates.emplace_back(); // without one
        for (const std::string& certificate : certificates) {
            if (!certificate.empty() && !exists(certificate)) {
                continue;
            }
            ssh_key key = nullptr;
            if (m_ssh.pki_import_privkey_file(file.c_str(), nullptr, nullptr, nullptr, &key) !=
                SSH_OK) {
                if (is_encrypted(file)) {
                    m_encrypted.push_back(file);
                } else { // a public key, for instance, which selects a key of the agent
                    m_only_openssh = "libssh cannot read a key file";
                }
                break;
            }
            if (const int result = use(SshKey(key), certificate); result != SSH_AUTH_DENIED) {
                return result;
            }
        }
    }
    return SSH_AUTH_DENIED;
}

/// Without an offer first: that saves a round trip.
int Authentication::use(SshKey key, const std::string& certificate)
{
    if (!certificate.empty()) {
        ssh_key imported = nullptr;
        if (m_ssh.pki_import_cert_file(certificate.c_str(), &imported) != SSH_OK) {
            return SSH_AUTH_DENIED;
        }
        const SshKey owner(imported);
        if (m_ssh.pki_copy_cert_to_privkey(imported, key.get()) != SSH_OK) {
            return SSH_AUTH_DENIED;
        }
    }
    return wait([&] { return m_ssh.userauth_publickey(m_session, nullptr, key.get()); });
}

int Authentication::try_agent()
{
    if (m_plan.agent.empty() || std::exchange(m_agent_tried, true)) {
        return SSH_AUTH_DENIED;
    }
    if (m_plan.identities_only) {
        m_only_openssh =
            m_encrypted.empty() ? m_only_openssh : "IdentitiesOnly selects a key of the agent";
        return SSH_AUTH_DENIED;
    }
    // libssh would wait without limit for an agent that hangs; one with a smart card takes its
    // time.
    constexpr std::chrono::seconds k_patience{3};
    return has_keys(m_plan.agent, k_patience)
               ? wait([&] { return m_ssh.userauth_agent(m_session, nullptr); })
               : SSH_AUTH_DENIED;
}

int Authentication::try_encrypted_key_files()
{
    while (!m_encrypted.empty() && m_questions.asker && !m_refused_to_answer) {
        const std::string file = m_encrypted.front();
        m_encrypted.erase(m_encrypted.begin());
        if (const int result = try_encrypted(file); result != SSH_AUTH_DENIED) {
            return result;
        }
    }
    return SSH_AUTH_DENIED;
}

/// The user is asked only for the passphrase of a key that the host accepts, if its public part is
/// known.
int Authentication::try_encrypted(const std::string& file)
{
    ssh_key known = nullptr;
    if (m_ssh.pki_import_pubkey_file((file + ".pub").c_str(), &known) == SSH_OK) {
        const SshKey offered(known);
        const int result =
            wait([&] { return m_ssh.userauth_try_publickey(m_session, nullptr, known); });
        if (result != SSH_AUTH_SUCCESS) {
            return result;
        }
    }
    for (int i = 0; i < m_plan.tries; ++i) {
        auto phrase = ask(fmt::format("Enter passphrase for key '{}': ", file), false);
        if (!phrase || phrase->empty()) {
            return SSH_AUTH_DENIED; // the next key
        }
        ssh_key key = nullptr;
        const int result =
            m_ssh.pki_import_privkey_file(file.c_str(), phrase->c_str(), nullptr, nullptr, &key);
        wipe(*phrase);
        if (result == SSH_OK) {
            const std::string certificate = file + std::string(k_certificate);
            return use(SshKey(key), exists(certificate) ? certificate : "");
        }
    }
    return SSH_AUTH_DENIED;
}

std::optional<std::string> Authentication::ask(const std::string& text, bool echo)
{
    const bool leaves_it_to_openssh = m_questions.may_use_openssh && !m_only_openssh.empty();
    if (!m_questions.asker || leaves_it_to_openssh || ++m_asked > k_most_questions) {
        return std::nullopt;
    }
    auto answer = m_questions.asker->ask(text, echo);
    m_refused_to_answer = !answer;
    m_has_answered = m_has_answered || answer;
    return answer;
}

int Authentication::ask_interactively()
{
    int result = SSH_AUTH_DENIED;
    for (int i = 0; i < m_plan.tries && m_questions.asker && result == SSH_AUTH_DENIED; ++i) {
        result = wait([&] { return m_ssh.userauth_kbdint(m_session, nullptr, nullptr); });
        for (int round = 0; result == SSH_AUTH_INFO; ++round) {
            if (round >= k_most_rounds || answer_round() != SSH_OK) {
                return SSH_AUTH_DENIED;
            }
            result = wait([&] { return m_ssh.userauth_kbdint(m_session, nullptr, nullptr); });
        }
        if (m_refused_to_answer || !m_has_answered) {
            break; // the host has no question
        }
    }
    return result;
}

/// Answers the questions of one round of keyboard-interactive.
int Authentication::answer_round()
{
    const char* const instruction = m_ssh.userauth_kbdint_getinstruction(m_session);
    std::string before = instruction == nullptr ? "" : instruction;
    if (m_questions.show && !before.empty()) {
        m_questions.show(std::exchange(before, ""));
    }
    const int count = m_ssh.userauth_kbdint_getnprompts(m_session);
    for (int i = 0; i < count; ++i) {
        char echo = 0;
        const char* const prompt =
            m_ssh.userauth_kbdint_getprompt(m_session, static_cast<unsigned>(i), &echo);
        auto answer = ask(fmt::format("({}@{}) {}{}{}", m_plan.user, m_plan.host, before,
                                      before.empty() ? "" : " ", prompt == nullptr ? "" : prompt),
                          echo != 0);
        if (!answer) {
            return SSH_ERROR;
        }
        const int result =
            m_ssh.userauth_kbdint_setanswer(m_session, static_cast<unsigned>(i), answer->c_str());
        wipe(*answer);
        if (result < 0) {
            return SSH_ERROR;
        }
    }
    return SSH_OK;
}

int Authentication::try_password()
{
    int result = SSH_AUTH_DENIED;
    for (int i = 0; i < m_plan.tries && result == SSH_AUTH_DENIED; ++i) {
        auto password = ask(fmt::format("{}@{}'s password: ", m_plan.user, m_plan.host), false);
        if (!password) {
            break;
        }
        result =
            wait([&] { return m_ssh.userauth_password(m_session, nullptr, password->c_str()); });
        wipe(*password);
    }
    return result;
}

} // namespace gpuq::remote
