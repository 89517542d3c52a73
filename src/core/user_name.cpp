// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/user_name.h"

#include <fmt/format.h>

#include <pwd.h>

namespace gpuq {

std::string user_name(unsigned uid)
{
    const passwd* const entry = ::getpwuid(uid);
    return entry == nullptr ? fmt::format("{}", uid) : fmt::format("{} ({})", entry->pw_name, uid);
}

} // namespace gpuq
