// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/node_names.h"
#include "ports/store.h"

namespace gpuq {

/// The names that this user's runs have on nodes, by the secret of the state directory; names
/// without a secret until a supervisor has made one.
NodeNames own_names(Store& store);

} // namespace gpuq
