// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/keytab.h"

#include "credentials/byte_reader.h"
#include "term/sanitise.h"

#include <algorithm>
#include <cstdint>

namespace gpuq::credentials {
namespace {

constexpr std::uint32_t k_magic = 0x0502;
constexpr std::uint32_t k_most_components = 16;

/// Empty if the entry is truncated.
std::string principal_of(ByteReader entry)
{
    const std::uint32_t count = entry.number(2);
    const std::string realm(entry.counted(2));
    std::string name;
    for (std::uint32_t i = 0; i < count && count <= k_most_components && !entry.broken(); ++i) {
        name += i == 0 ? "" : "/";
        name += entry.counted(2);
    }
    return entry.broken() || name.empty() ? "" : sanitised(name + "@" + realm);
}

} // namespace

Result<std::vector<std::string>> principals_in_keytab(std::string_view keytab)
{
    ByteReader reader(keytab);
    if (reader.number(2) != k_magic) {
        return fail(Error::Kind::usage, "not a keytab that gpuq can read");
    }
    std::vector<std::string> found;
    while (!reader.at_end() && !reader.broken()) {
        // A negative size marks a hole left by a deleted key.
        const auto size = static_cast<std::int32_t>(reader.number(4));
        if (size == 0) {
            break;
        }
        const bool is_hole = size < 0;
        const auto bytes = static_cast<std::size_t>(is_hole ? -static_cast<std::int64_t>(size)
                                                            : static_cast<std::int64_t>(size));
        const std::string name = principal_of(ByteReader(reader.take(bytes)));
        if (!is_hole && !name.empty() &&
            std::find(found.begin(), found.end(), name) == found.end()) {
            found.push_back(name);
        }
    }
    if (found.empty()) {
        return fail(Error::Kind::usage, "a keytab without a key");
    }
    return found;
}

} // namespace gpuq::credentials
