// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/caller.h"

#include "cli/queries/site_context.h"
#include "core/number.h"
#include "policy/reader.h"

#include <limits>
#include <unistd.h>

namespace gpuq::cli {

Result<Caller> caller_of(Services& services)
{
    const auto text = services.variable("SUDO_UID");
    const auto name = services.variable("SUDO_USER");
    if (!text || !name) {
        return Caller{user_name(), ::geteuid()};
    }
    const auto uid = whole_number(*text);
    if (uid == std::uint64_t{::geteuid()}) {
        return Caller{user_name(), ::geteuid()};
    }
    if (!uid || *uid > std::numeric_limits<std::uint32_t>::max() || !policy::is_user_name(*name)) {
        return fail(Error::Kind::usage, "SUDO_USER and SUDO_UID do not name a user");
    }
    return Caller{*name, static_cast<std::uint32_t>(*uid), true};
}

} // namespace gpuq::cli
