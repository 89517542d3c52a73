// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <sys/types.h>

/// Pairs of descriptors that accompany bytes over a local socket (SCM_RIGHTS, unix(7)): the
/// receiver then has the same open files.
namespace gpuq {

/// False if not all bytes, at least one, were sent; sets errno.
bool send_with_descriptors(int socket, std::string_view bytes, std::array<int, 2> descriptors);

using DescriptorPair = std::array<Descriptor, 2>;
/// Like recv(2). `passed`: the descriptors that came with the bytes, if any. Returns 0, as at the
/// end, if this process has no descriptor left for them.
ssize_t receive_with_descriptors(int socket, std::span<char> buffer,
                                 std::optional<DescriptorPair>& passed);

} // namespace gpuq
