// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/result.h"

namespace gpuq {

ExitStatus exit_status_of(Error::Kind kind)
{
    switch (kind) {
    case Error::Kind::usage:
    case Error::Kind::missing:
        return ExitStatus::usage;
    case Error::Kind::busy:
    case Error::Kind::unreachable:
        return ExitStatus::unreachable;
    case Error::Kind::denied:
        return ExitStatus::refused;
    case Error::Kind::lost:
        return ExitStatus::lost;
    case Error::Kind::max_wait:
        return ExitStatus::max_wait;
    case Error::Kind::stopped:
        return ExitStatus::stopped;
    case Error::Kind::time_limit:
        return ExitStatus::time_limit;
    case Error::Kind::not_executable:
        return ExitStatus::not_executable;
    case Error::Kind::not_found:
        return ExitStatus::not_found;
    case Error::Kind::io:
    case Error::Kind::internal:
        return ExitStatus::internal;
    }
    return ExitStatus::internal;
}

} // namespace gpuq
