// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <vector>

/// Paths in the state directory, relative to its root. Symbolic links are never followed, so that a
/// path can't leave the directory.
namespace gpuq {

constexpr int k_directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

/// Whether every component is a name. Paths are built in core/layout.cpp; any other form could
/// leave the state directory.
bool is_safe(std::string_view path);
/// The parent, empty for the root, and the last component.
std::pair<std::string_view, std::string_view> split_last(std::string_view path);

enum class Missing { is_error, is_made };

/// Opens the directory `path` component by component. Sets errno on failure. Parents in which a
/// directory was created are appended to `changed`, if given.
Descriptor open_directory(const std::string& root, std::string_view path, Missing missing,
                          std::vector<Descriptor>* changed = nullptr);
/// Opens a regular file for reading. Sets errno on failure.
Descriptor open_file(const std::string& root, std::string_view path, struct stat& status);

/// The error of an operation on a path: `can't VERB PATH`. Also recorded in the log: several
/// callers discard the failure of a file that is only a cache or will be written again.
Error trouble(std::string_view verb, std::string_view root, std::string_view path, int error);

} // namespace gpuq
