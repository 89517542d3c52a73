// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

namespace gpuq {

/// Removes data that killed processes of this user have left on this machine: all private
/// directories in /tmp (io/private_dir.h) that no process has locked, with their contents. Does
/// not follow symbolic links. If there is nothing to remove, it only reads /tmp once. Never fails:
/// entries that cannot be removed are left for the next call.
void sweep_leftovers();

} // namespace gpuq
