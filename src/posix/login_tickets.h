// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/credentials.h"
#include "ports/host.h"

#include <functional>
#include <optional>
#include <string>

namespace gpuq {

/// The cache that KRB5CCNAME names, else the one that krb5.conf does (default_ccache_name), else
/// /tmp/krb5cc_UID. FILE and DIR caches are read as the files they are; what a kernel or a daemon
/// keeps (KEYRING, KCM, API, MEMORY is nobody's) by MIT's library where it is installed, in a
/// process apart, for it may hang.
class PosixLoginTickets : public LoginTickets {
public:
    using Variable = std::function<std::optional<std::string>(const std::string&)>;
    /// `host` outlives the object.
    PosixLoginTickets(Variable variable, Host& host)
        : m_variable(std::move(variable))
        , m_host(host)
    {
    }
    Result<std::string> cache() override;
    /// BEARER_TOKEN, the file that BEARER_TOKEN_FILE names, bt_uUID in XDG_RUNTIME_DIR, then in
    /// /tmp; what is empty is passed over.
    Result<std::string> token() override;

private:
    std::string name() const;
    Result<std::string> by_library(const std::string& name);

    Variable m_variable;
    Host& m_host;
};

/// `default_ccache_name` out of a krb5.conf; `file` gives the text of another that it includes, or
/// nothing, `list` the files of a folder. Empty: it has none.
std::string
default_cache_in(const std::string& text,
                 const std::function<std::optional<std::string>(const std::string&)>& file,
                 const std::function<std::vector<std::string>(const std::string&)>& list);

} // namespace gpuq
