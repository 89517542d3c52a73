// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/slurm_object.h"

namespace gpuq {

std::string_view word(SlurmObject::Kind kind)
{
    constexpr std::string_view k_keywords[] = {"setting",     "requirement", "pool",  "partition",
                                               "qos",         "access",      "share", "limit",
                                               "reservation", "script",      "file"};
    return k_keywords[static_cast<int>(kind)];
}

} // namespace gpuq
