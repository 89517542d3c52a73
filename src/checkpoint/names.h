// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// Interprets the names of checkpoints.
namespace gpuq::checkpoint {

/// True if a path component matches the pattern: `*` is any characters, `?` one character. A
/// leading dot is matched only by a dot.
bool matches(std::string_view pattern, std::string_view name);

/// True for names that programs use while writing a checkpoint: `*.tmp`, `*.part`, `tmp-*`,
/// `*.orbax-checkpoint-tmp*`.
bool is_unfinished(std::string_view name);

/// True for those, and for other names that are not checkpoints: `*~`, and `*.incomplete*`, as
/// renamed by put_aside().
bool is_temporary(std::string_view name);

/// The step in a path, from the last component with a number: the number after `step`, else after
/// `iter`, else after `epoch`, else the last number. Extensions like `.h5` and numbers with a
/// decimal point (`val_loss=0.32`) do not count.
std::optional<std::uint64_t> step_of(std::string_view relative_path);

} // namespace gpuq::checkpoint
