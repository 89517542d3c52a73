// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/places.h"

namespace gpuq::embedded {

std::optional<std::string> default_dir(unsigned uid, const char* xdg_state_home, const char* home)
{
    if (uid == 0) {
        return k_machine_dir;
    }
    if (xdg_state_home != nullptr && xdg_state_home[0] == '/') {
        return std::string(xdg_state_home) + "/gpuq/cluster";
    }
    if (home != nullptr && home[0] == '/') {
        return std::string(home) + "/.local/state/gpuq/cluster";
    }
    return std::nullopt;
}

} // namespace gpuq::embedded
