// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/node_names.h"
#include "ports/store.h"

namespace gpuq {

/// The names of this user's runs on nodes, derived from the secret in the state directory; names
/// without a secret until a supervisor has created one.
NodeNames own_names(Store& store);

} // namespace gpuq
