// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/random.h"

#include <sys/random.h>

#include <cstdlib>

namespace gpuq {

std::array<unsigned char, 8> random_bytes()
{
    std::array<unsigned char, 8> bytes{};
    // Requests of up to 256 bytes are never short or interrupted (getrandom(2)).
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        std::abort();
    }
    return bytes;
}

} // namespace gpuq
