// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/files_below.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace gpuq::snapshots {

FilesBelow::FilesBelow(const std::string& root)
    : m_root(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))
{
}

int FilesBelow::parent_of(const std::string& path)
{
    const std::size_t end = path.rfind('/') + 1; // 0 without a slash
    if (m_parent && path.compare(0, end, m_parent_path) == 0) {
        return m_parent.get();
    }
    Descriptor at(::openat(m_root.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (std::size_t begin = 0; at && begin != end;) {
        const std::size_t slash = path.find('/', begin);
        at = Descriptor(::openat(at.get(), path.substr(begin, slash - begin).c_str(),
                                 O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        begin = slash + 1;
    }
    const int error = errno;
    m_parent = std::move(at);
    m_parent_path = path.substr(0, end);
    errno = error;
    return m_parent ? m_parent.get() : -1;
}

Descriptor FilesBelow::open(const std::string& path, int flags)
{
    const int parent = parent_of(path);
    return Descriptor(
        parent < 0 ? -1 : ::openat(parent, name_of(path).c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
}

std::optional<struct stat> FilesBelow::status(const std::string& path)
{
    struct stat status {};
    const int parent = parent_of(path);
    if (parent < 0 || ::fstatat(parent, name_of(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return std::nullopt;
    }
    return status;
}

std::optional<RegularFile> FilesBelow::read(const std::string& path)
{
    const Descriptor file = open(path, O_RDONLY | O_NONBLOCK);
    RegularFile read{};
    if (!file || ::fstat(file.get(), &read.status) != 0) {
        return std::nullopt;
    }
    if (!S_ISREG(read.status.st_mode)) {
        errno = EINVAL;
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

std::string name_of(const std::string& path)
{
    return path.substr(path.rfind('/') + 1);
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
