// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "runs/look.h"

namespace gpuq::cli {

/// A verb's interfaces, as a status query (runs/look.h) needs them. `doors` must outlive the
/// result.
inline LookDoors look_doors(Doors& doors, Store& store)
{
    return {store, doors.clock(), [&doors] { return doors.cluster(); },
            [&doors] { return doors.accounting(); }};
}

} // namespace gpuq::cli
