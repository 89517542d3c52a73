// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/ccache.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace gpuq::credentials;

/// For any cache content, parsing stays within the buffer and no escape character reaches the
/// principal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto ticket = ticket_in(bytes);
    if (ticket && ticket->principal.find('\x1b') != std::string::npos) {
        std::abort();
    }
    return 0;
}
