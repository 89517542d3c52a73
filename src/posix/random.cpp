// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/random.h"

#include <sys/random.h>

#include <cstdlib>

namespace gpuq {

std::array<unsigned char, 8> random_bytes()
{
    std::array<unsigned char, 8> bytes{};
    // Up to 256 bytes come whole and can't be interrupted (getrandom(2)).
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        std::abort();
    }
    return bytes;
}

} // namespace gpuq
