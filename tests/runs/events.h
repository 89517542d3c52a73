// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/records/journal.h"

namespace gpuq {

inline Event event(Event::Kind kind, Time at, const std::string& detail = "")
{
    Event made;
    made.kind = kind;
    made.at = at;
    if (!detail.empty()) {
        made.detail = detail;
    }
    return made;
}

} // namespace gpuq
