// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// What the names of checkpoints say.
namespace gpuq::checkpoint {

/// Whether a path component matches: `*` is any characters, `?` one, all others themselves. A dot
/// at the beginning is matched by a dot only.
bool matches(std::string_view pattern, std::string_view name);

/// Whether programs give such names to what they are still writing: `*.tmp`, `*.part`, `tmp-*`,
/// `*.orbax-checkpoint-tmp*`.
bool is_unfinished(std::string_view name);

/// Those, and what is no checkpoint either: `*~`, and `*.incomplete*`, which we have put aside.
bool is_temporary(std::string_view name);

/// The step that a path tells of: of its last component that has a number, the one after `step`,
/// else after `iter`, else after `epoch`, else the last one. An ending like `.h5` and numbers with
/// a decimal point (`val_loss=0.32`) do not count.
std::optional<std::uint64_t> step_of(std::string_view relative_path);

} // namespace gpuq::checkpoint
