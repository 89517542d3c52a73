// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::credentials {

/// A FILE credentials cache with one ticket, byte for byte as MIT's library writes it.
struct CacheBytes {
    int version = 4;
    std::string realm = "EXAMPLE.ORG";
    std::vector<std::string> owner = {"ada"};
    std::vector<std::string> server = {"krbtgt", "EXAMPLE.ORG"};
    std::uint32_t authenticated = 100, start = 100, end = 160, renew_till = 1300;
    std::uint32_t flags = 0x40000000 | 0x00800000; ///< forwardable, renewable
};

inline std::string big_endian(std::uint32_t value, int size)
{
    std::string bytes;
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
        bytes += static_cast<char>(value >> static_cast<unsigned>(shift) & 0xffU);
    }
    return bytes;
}

inline std::string counted(std::string_view text)
{
    return big_endian(static_cast<std::uint32_t>(text.size()), 4) + std::string(text);
}

inline std::string principal_of(const std::string& realm, const std::vector<std::string>& names)
{
    std::string bytes =
        big_endian(1, 4) + big_endian(static_cast<std::uint32_t>(names.size()), 4) + counted(realm);
    for (const std::string& name : names) {
        bytes += counted(name);
    }
    return bytes;
}

inline std::string credential_of(const CacheBytes& one)
{
    const std::string type = big_endian(18, 2);
    return principal_of(one.realm, one.owner) + principal_of(one.realm, one.server) + type +
           (one.version == 3 ? type : "") + counted("a key of 32 bytes, which is secret") +
           big_endian(one.authenticated, 4) + big_endian(one.start, 4) + big_endian(one.end, 4) +
           big_endian(one.renew_till, 4) + big_endian(0, 1) + big_endian(one.flags, 4) +
           big_endian(1, 4) + big_endian(2, 2) + counted("addr") + big_endian(0, 4) +
           counted("the ticket itself") + counted("");
}

inline std::string cache_of(const CacheBytes& one)
{
    const std::string fields = big_endian(1, 2) + big_endian(8, 2) + std::string(8, '\0');
    std::string bytes = big_endian(0x0500U + static_cast<std::uint32_t>(one.version), 2);
    if (one.version == 4) {
        bytes += big_endian(static_cast<std::uint32_t>(fields.size()), 2) + fields;
    }
    return bytes + principal_of(one.realm, one.owner) + credential_of(one);
}

} // namespace gpuq::credentials
