// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <dlfcn.h>
#include <string_view>

namespace gpuq::remote {
namespace {

constexpr const char* k_name = "libssh.so.4";
constexpr std::array<int, 3> k_oldest{0, 10, 6}; ///< older ones have known vulnerabilities

/// Sets `missing` to the name of a function that the library lacks.
class Loader {
public:
    explicit Loader(void* library)
        : m_library(library)
    {
    }
    template <typename Function>
    void take(const char* name, Function& function)
    {
        function = reinterpret_cast<Function>(::dlsym(m_library, name));
        m_missing = function == nullptr ? name : m_missing;
    }
    const char* missing() const { return m_missing; }

private:
    void* m_library;
    const char* m_missing = nullptr;
};

const char* load_functions(void* library, Libssh& found)
{
    Loader from(library);
    from.take("ssh_new", found.new_session);
    from.take("ssh_free", found.free_session);
    from.take("ssh_options_set", found.options_set);
    from.take("ssh_set_blocking", found.set_blocking);
    from.take("ssh_connect", found.connect);
    from.take("ssh_disconnect", found.disconnect);
    from.take("ssh_get_error", found.get_error);
    from.take("ssh_get_fd", found.get_fd);
    from.take("ssh_get_status", found.get_status);
    from.take("ssh_get_issue_banner", found.get_issue_banner);
    from.take("ssh_string_free_char", found.string_free_char);
    from.take("ssh_get_server_publickey", found.get_server_publickey);
    from.take("ssh_known_hosts_parse_line", found.known_hosts_parse_line);
    from.take("ssh_knownhosts_entry_free", found.knownhosts_entry_free);
    from.take("ssh_set_agent_socket", found.set_agent_socket);
    from.take("ssh_set_message_callback", found.set_message_callback);
    from.take("ssh_key_cmp", found.key_cmp);
    from.take("ssh_key_free", found.key_free);
    from.take("ssh_key_type", found.key_type);
    from.take("ssh_key_type_to_char", found.key_type_to_char);
    from.take("ssh_pki_key_ecdsa_name", found.pki_key_ecdsa_name);
    from.take("ssh_pki_import_privkey_file", found.pki_import_privkey_file);
    from.take("ssh_pki_import_pubkey_file", found.pki_import_pubkey_file);
    from.take("ssh_pki_import_cert_file", found.pki_import_cert_file);
    from.take("ssh_pki_copy_cert_to_privkey", found.pki_copy_cert_to_privkey);
    from.take("ssh_userauth_none", found.userauth_none);
    from.take("ssh_userauth_list", found.userauth_list);
    from.take("ssh_userauth_gssapi", found.userauth_gssapi);
    from.take("ssh_userauth_agent", found.userauth_agent);
    from.take("ssh_userauth_try_publickey", found.userauth_try_publickey);
    from.take("ssh_userauth_publickey", found.userauth_publickey);
    from.take("ssh_userauth_password", found.userauth_password);
    from.take("ssh_userauth_kbdint", found.userauth_kbdint);
    from.take("ssh_userauth_kbdint_getinstruction", found.userauth_kbdint_getinstruction);
    from.take("ssh_userauth_kbdint_getnprompts", found.userauth_kbdint_getnprompts);
    from.take("ssh_userauth_kbdint_getprompt", found.userauth_kbdint_getprompt);
    from.take("ssh_userauth_kbdint_setanswer", found.userauth_kbdint_setanswer);
    from.take("ssh_channel_new", found.channel_new);
    from.take("ssh_channel_free", found.channel_free);
    from.take("ssh_channel_open_session", found.channel_open_session);
    from.take("ssh_channel_open_forward", found.channel_open_forward);
    from.take("ssh_channel_request_exec", found.channel_request_exec);
    from.take("ssh_channel_is_closed", found.channel_is_closed);
    from.take("ssh_channel_window_size", found.channel_window_size);
    from.take("ssh_channel_write", found.channel_write);
    from.take("ssh_set_channel_callbacks", found.set_channel_callbacks);
    from.take("ssh_event_new", found.event_new);
    from.take("ssh_event_free", found.event_free);
    from.take("ssh_event_add_session", found.event_add_session);
    from.take("ssh_event_remove_session", found.event_remove_session);
    from.take("ssh_event_dopoll", found.event_dopoll);
    return from.missing();
}

/// The numbers of "0.10.6/openssl/zlib".
std::array<int, 3> numbers_in(std::string_view version)
{
    std::array<int, 3> numbers{};
    const char* at = version.data();
    const char* const end = at + version.size();
    for (int& number : numbers) {
        at = std::from_chars(at, end, number).ptr;
        at = std::min(at + 1, end);
    }
    return numbers;
}

Result<Libssh> load()
{
    void* const library = ::dlopen(k_name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return fail(Error::Kind::missing, fmt::format("{} is not installed", k_name));
    }
    Libssh found{};
    if (const char* const name = load_functions(library, found)) {
        return fail(Error::Kind::missing, fmt::format("{} lacks {}", k_name, name));
    }
    decltype(&::ssh_version) version = nullptr;
    Loader(library).take("ssh_version", version);
    const std::string_view text = version == nullptr ? "" : version(0);
    found.release = text.substr(0, text.find('/'));
    if (numbers_in(text) < k_oldest) {
        return fail(Error::Kind::missing, fmt::format("libssh {} is too old, {} is required",
                                                      found.release, fmt::join(k_oldest, ".")));
    }
    return found;
}

} // namespace

Result<const Libssh*> libssh()
{
    static const Result<Libssh> loaded = load();
    if (!loaded) {
        return loaded.error();
    }
    return &*loaded;
}

// An object of the library proves that it was loaded.
void LibsshDeleter::operator()(ssh_session session) const
{
    (*libssh())->free_session(session);
}

void LibsshDeleter::operator()(ssh_key key) const
{
    (*libssh())->key_free(key);
}

} // namespace gpuq::remote
