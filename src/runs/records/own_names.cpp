// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/own_names.h"

#include "core/layout.h"

namespace gpuq {

NodeNames own_names(Store& store)
{
    const auto secret = store.read(layout::secret());
    return NodeNames(secret ? *secret : "");
}

} // namespace gpuq
