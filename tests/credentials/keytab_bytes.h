// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpuq::credentials {

inline std::string keytab_number(std::uint32_t value, int size)
{
    std::string bytes;
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
        bytes += static_cast<char>(value >> shift & 0xffU);
    }
    return bytes;
}

inline std::string keytab_text(const std::string& text)
{
    return keytab_number(static_cast<std::uint32_t>(text.size()), 2) + text;
}

/// A principal's key as ktutil writes it. A hole (deleted entry) has a negative size.
inline std::string key_of(const std::vector<std::string>& names, const std::string& realm,
                          bool hole = false)
{
    std::string bytes =
        keytab_number(static_cast<std::uint32_t>(names.size()), 2) + keytab_text(realm);
    for (const std::string& name : names) {
        bytes += keytab_text(name);
    }
    bytes += keytab_number(1, 4) + keytab_number(1'700'000'000, 4) + keytab_number(3, 1) +
             keytab_number(18, 2) + keytab_text("key");
    const auto size = static_cast<std::uint32_t>(bytes.size());
    return keytab_number(hole ? 0U - size : size, 4) + bytes;
}

inline const std::string k_keytab_head = "\x05\x02";

} // namespace gpuq::credentials
