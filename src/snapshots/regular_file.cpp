// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/regular_file.h"

#include "io/descriptor.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace gpuq::snapshots {

std::optional<RegularFile> read_regular_file(int directory, const std::string& path)
{
    const Descriptor file(
        ::openat(directory, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    RegularFile read{};
    if (!file || ::fstat(file.get(), &read.status) != 0 || !S_ISREG(read.status.st_mode)) {
        return std::nullopt;
    }
    read.content.resize(static_cast<std::size_t>(read.status.st_size));
    std::size_t size = 0;
    while (size < read.content.size()) {
        const ssize_t count =
            ::read(file.get(), read.content.data() + size, read.content.size() - size);
        if (count < 0 && errno != EINTR) {
            return std::nullopt;
        }
        if (count == 0) {
            break;
        }
        size += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    read.content.resize(size);
    return read;
}

Stamp stamp_of(const struct stat& status)
{
    constexpr std::int64_t k_second = 1'000'000'000;
    const auto nanoseconds = [](const timespec& time) {
        return std::int64_t{time.tv_sec} * k_second + time.tv_nsec;
    };
    return {status.st_ino, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim),
            static_cast<std::uint64_t>(status.st_size)};
}

} // namespace gpuq::snapshots
