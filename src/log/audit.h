// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>

namespace gpuq::log {

/// Appends a line to the audit log at `path`, a file of mode 0600 that becomes PATH.1, PATH.2 .. at
/// 1 MiB. None of them is ever removed: recorded actions must not erase earlier ones. The line:
/// the time (UTC), the calling user (and who became that user by sudo), `text` without secrets and
/// control characters. `io` if it can't be written.
Result<void> audit(const std::string& path, std::string_view text);

} // namespace gpuq::log
