// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace gpuq::report {
namespace {

constexpr std::size_t k_block = 512;
constexpr std::size_t k_longest_name = 99;

/// Offsets and sizes of POSIX.1-1988, ustar.
std::string header_of(const ArchiveFile& file, Time at)
{
    std::string header(k_block, '\0');
    const auto put = [&](std::size_t place, const std::string& text) {
        header.replace(place, text.size(), text);
    };
    const auto seconds = std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
    put(0, file.name.substr(0, k_longest_name));
    put(100, "0000600");
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", file.content.size()));
    put(136, fmt::format("{:011o}", std::max<std::int64_t>(seconds, 0)));
    put(148, std::string(8, ' ')); // in place of the checksum while it is computed
    put(156, "0");
    put(257, std::string("ustar\0"
                         "00",
                         8));
    const unsigned sum =
        std::accumulate(header.begin(), header.end(), 0U,
                        [](unsigned total, unsigned char byte) { return total + byte; });
    put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    return header;
}

} // namespace

std::string tar_of(const std::vector<ArchiveFile>& files, Time at)
{
    std::string archive;
    for (const ArchiveFile& file : files) {
        archive += header_of(file, at);
        archive += file.content;
        archive.resize((archive.size() + k_block - 1) / k_block * k_block, '\0');
    }
    archive.resize(archive.size() + 2 * k_block, '\0');
    return archive;
}

} // namespace gpuq::report
