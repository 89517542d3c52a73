// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

namespace gpuq {

/// Removes what processes of this user that were killed have left on this machine: every private
/// directory in /tmp (core/private_dir.h) that no process holds, whatever is in it. Follows no
/// symbolic link. One reading of /tmp when there is nothing to remove. Never fails: what can't be
/// removed stays for the next call.
void sweep_leftovers();

} // namespace gpuq
