// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/credentials.h"
#include "ports/host.h"

#include <functional>
#include <optional>
#include <string>

namespace gpuq {

/// Reads the cache named by KRB5CCNAME, else by krb5.conf (default_ccache_name), else
/// /tmp/krb5cc_UID. FILE and DIR caches are read directly. Caches held by the kernel or a daemon
/// (KEYRING, KCM, API) are read with MIT's library where it is installed, in a separate process
/// because it can hang. MEMORY caches are not accessible from another process and count as
/// `missing`.
class PosixLoginTickets : public LoginTickets {
public:
    using Variable = std::function<std::optional<std::string>(const std::string&)>;
    /// `host` must outlive the object.
    PosixLoginTickets(Variable variable, Host& host)
        : m_variable(std::move(variable))
        , m_host(host)
    {
    }
    Result<std::string> cache() override;
    /// Tries BEARER_TOKEN, the file named by BEARER_TOKEN_FILE, bt_uUID in XDG_RUNTIME_DIR, then in
    /// /tmp; empty ones are skipped.
    Result<std::string> token() override;

private:
    std::string name() const;
    Result<std::string> by_library(const std::string& name);

    Variable m_variable;
    Host& m_host;
};

/// `default_ccache_name` in the text of a krb5.conf; empty if not set. `file` returns the text of
/// an included file or nullopt, `list` the files in an included directory.
std::string
default_cache_in(const std::string& text,
                 const std::function<std::optional<std::string>(const std::string&)>& file,
                 const std::function<std::vector<std::string>(const std::string&)>& list);

} // namespace gpuq
