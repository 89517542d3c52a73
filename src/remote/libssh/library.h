// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <memory>
#include <string>

namespace gpuq::remote {

/// The functions of libssh.so.4, which is loaded when the first of them is needed: a command on
/// this machine does not pay for it, and a machine without it uses OpenSSH. Each member is the
/// function `ssh_NAME`.
struct Libssh {
    std::string release; ///< "0.10.6"

    decltype(&::ssh_new) new_session;
    decltype(&::ssh_free) free_session;
    decltype(&::ssh_options_set) options_set;
    decltype(&::ssh_set_blocking) set_blocking;
    decltype(&::ssh_connect) connect;
    decltype(&::ssh_disconnect) disconnect;
    decltype(&::ssh_get_error) get_error;
    decltype(&::ssh_get_fd) get_fd;
    decltype(&::ssh_get_status) get_status;
    decltype(&::ssh_get_issue_banner) get_issue_banner;
    decltype(&::ssh_string_free_char) string_free_char;
    decltype(&::ssh_get_server_publickey) get_server_publickey;
    decltype(&::ssh_known_hosts_parse_line) known_hosts_parse_line;
    decltype(&::ssh_knownhosts_entry_free) knownhosts_entry_free;
    decltype(&::ssh_set_agent_socket) set_agent_socket;
    decltype(&::ssh_set_message_callback) set_message_callback;

    decltype(&::ssh_key_cmp) key_cmp;
    decltype(&::ssh_key_free) key_free;
    decltype(&::ssh_key_type) key_type;
    decltype(&::ssh_key_type_to_char) key_type_to_char;
    decltype(&::ssh_pki_key_ecdsa_name) pki_key_ecdsa_name;
    decltype(&::ssh_pki_import_privkey_file) pki_import_privkey_file;
    decltype(&::ssh_pki_import_pubkey_file) pki_import_pubkey_file;
    decltype(&::ssh_pki_import_cert_file) pki_import_cert_file;
    decltype(&::ssh_pki_copy_cert_to_privkey) pki_copy_cert_to_privkey;

    decltype(&::ssh_userauth_none) userauth_none;
    decltype(&::ssh_userauth_list) userauth_list;
    decltype(&::ssh_userauth_gssapi) userauth_gssapi;
    decltype(&::ssh_userauth_agent) userauth_agent;
    decltype(&::ssh_userauth_try_publickey) userauth_try_publickey;
    decltype(&::ssh_userauth_publickey) userauth_publickey;
    decltype(&::ssh_userauth_password) userauth_password;
    decltype(&::ssh_userauth_kbdint) userauth_kbdint;
    decltype(&::ssh_userauth_kbdint_getinstruction) userauth_kbdint_getinstruction;
    decltype(&::ssh_userauth_kbdint_getnprompts) userauth_kbdint_getnprompts;
    decltype(&::ssh_userauth_kbdint_getprompt) userauth_kbdint_getprompt;
    decltype(&::ssh_userauth_kbdint_setanswer) userauth_kbdint_setanswer;

    decltype(&::ssh_channel_new) channel_new;
    decltype(&::ssh_channel_free) channel_free;
    decltype(&::ssh_channel_open_session) channel_open_session;
    decltype(&::ssh_channel_open_forward) channel_open_forward;
    decltype(&::ssh_channel_request_exec) channel_request_exec;
    decltype(&::ssh_channel_is_closed) channel_is_closed;
    decltype(&::ssh_channel_window_size) channel_window_size;
    decltype(&::ssh_channel_write) channel_write;
    decltype(&::ssh_set_channel_callbacks) set_channel_callbacks;

    decltype(&::ssh_event_new) event_new;
    decltype(&::ssh_event_free) event_free;
    decltype(&::ssh_event_add_session) event_add_session;
    decltype(&::ssh_event_remove_session) event_remove_session;
    decltype(&::ssh_event_dopoll) event_dopoll;
};

/// The library, loaded once and never unloaded. `missing` if this machine has none, or one older
/// than 0.10.6, with a text that can follow "OpenSSH, since". Any thread.
Result<const Libssh*> libssh();

/// Repeats a call that waits for the host until it has a response or the connection is closed, for
/// a session whose time limit is short. libssh itself notices only that limit, and no
/// disconnection.
template <typename Call>
int repeated(const Libssh& ssh, ssh_session session, const Call& call)
{
    while (true) {
        const int result = call();
        const int closed = ssh.get_status(session) & (SSH_CLOSED | SSH_CLOSED_ERROR);
        if (closed != 0 && result != SSH_OK) {
            return SSH_ERROR; // also SSH_AUTH_ERROR; libssh 0.11 reports a refusal instead
        }
        if (result != SSH_AGAIN && result != SSH_AUTH_AGAIN) {
            return result;
        }
    }
}

/// Owners of libssh's objects.
struct LibsshDeleter {
    void operator()(ssh_session session) const;
    void operator()(ssh_key key) const;
};
using SshSession = std::unique_ptr<ssh_session_struct, LibsshDeleter>;
using SshKey = std::unique_ptr<ssh_key_struct, LibsshDeleter>;

} // namespace gpuq::remote
