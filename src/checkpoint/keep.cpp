// SPDX-License-Identifier: GPL-2.0-or-later
// A copy is made under a temporary name and synced. The original is then compared with the state
// that find_checkpoints() found, and the copy is renamed only if it has not changed. NAME is
// therefore always a complete copy.
#include "checkpoint/keep.h"

#include "checkpoint/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace gpuq::checkpoint {
namespace {

// In this file, a function that can fail returns 0 or an errno.

int result_of(int answer)
{
    return answer == 0 ? 0 : errno;
}

int write_all(int to, const char* bytes, std::size_t count)
{
    while (count > 0) {
        const ssize_t written = ::write(to, bytes, count);
        if (written < 0 && errno != EINTR) {
            return errno;
        }
        const std::size_t done = written < 0 ? 0 : static_cast<std::size_t>(written);
        bytes += done;
        count -= done;
    }
    return 0;
}

/// Copies from the current offsets of both files to the end.
int copy_by_hand(int from, int to)
{
    std::vector<char> buffer(1 << 20);
    while (true) {
        const ssize_t got = ::read(from, buffer.data(), buffer.size());
        if (got == 0) {
            return 0;
        }
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        const std::size_t count = got < 0 ? 0 : static_cast<std::size_t>(got);
        if (const int error = write_all(to, buffer.data(), count)) {
            return error;
        }
    }
}

/// Copies in the kernel or on the file server as far as they support it, the rest by hand.
int copy_bytes(int from, int to)
{
    constexpr std::size_t k_at_once = 64 << 20;
    while (::copy_file_range(from, nullptr, to, nullptr, k_at_once, 0) > 0) {
    }
    return copy_by_hand(from, to);
}

int take_over_times(int file, const struct stat& original)
{
    const std::array<struct timespec, 2> times = {original.st_atim, original.st_mtim};
    return result_of(::futimens(file, times.data()));
}

/// A file or directory to copy, and its destination.
struct Job {
    int parent = AT_FDCWD; ///< the directory that contains it
    std::string name;      ///< its name in `parent`
    int to = AT_FDCWD;     ///< an open directory
    std::string path;      ///< relative to `to`
    KeepBy by = KeepBy::copy;
};

/// Creates a hard link. True only if it refers to the file that is open, not to another one of the
/// same name.
bool link_file(const Job& job, const struct stat& original)
{
    struct stat status = {};
    if (::linkat(job.parent, job.name.c_str(), job.to, job.path.c_str(), 0) != 0) {
        return false;
    }
    if (::fstatat(job.to, job.path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_ino == original.st_ino && status.st_dev == original.st_dev) {
        return true;
    }
    ::unlinkat(job.to, job.path.c_str(), 0);
    return false;
}

Descriptor new_file(const Job& job)
{
    return Descriptor(::openat(job.to, job.path.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

int copy_file(const Job& job)
{
    const OpenFile opened = open_file(job.parent, job.name);
    if (opened.error != 0) {
        return opened.error;
    }
    Descriptor file = new_file(job);
    if (!file) {
        return errno;
    }
    if (::ioctl(file.get(), FICLONE, opened.file.get()) != 0) {
        if (job.by == KeepBy::link) {
            ::unlinkat(job.to, job.path.c_str(), 0);
            if (link_file(job, opened.status)) {
                return result_of(::fsync(opened.file.get()));
            }
            file = new_file(job);
        }
        if (const int error = file ? copy_bytes(opened.file.get(), file.get()) : errno) {
            return error;
        }
    }
    const int error = take_over_times(file.get(), opened.status);
    return error != 0 ? error : result_of(::fsync(file.get()));
}

int copy_link(const Job& job)
{
    std::array<char, PATH_MAX> target{};
    const ssize_t length =
        ::readlinkat(job.parent, job.name.c_str(), target.data(), target.size() - 1);
    return length < 0 ? errno : result_of(::symlinkat(target.data(), job.to, job.path.c_str()));
}

int copy_part(const Job& job, Kind kind)
{
    switch (kind) {
    case Kind::file:
        return copy_file(job);
    case Kind::directory:
        return result_of(::mkdirat(job.to, job.path.c_str(), 0700));
    case Kind::link:
        return copy_link(job);
    case Kind::other:
        break;
    }
    return 0;
}

/// Sets the directory's times last, because adding files changes them.
int finish_directory(int parent, const std::string& path, const struct stat& original)
{
    const Descriptor directory = open_directory(parent, path);
    if (!directory) {
        return errno;
    }
    const int error = take_over_times(directory.get(), original);
    return error != 0 ? error : result_of(::fsync(directory.get()));
}

struct Directory {
    std::string path;
    struct stat status = {};
};

/// `directory` is the open original, `to` the empty copy.
int copy_tree(int directory, int to, KeepBy by)
{
    int error = 0;
    std::vector<Directory> directories(1, {".", {}});
    ::fstat(directory, &directories[0].status);
    const Tree tree = walk(directory, [&](int parent, const std::string& name, Part& part) {
        error = error != 0 ? error : copy_part({parent, name, to, part.path, by}, part.kind);
        if (part.kind == Kind::directory) {
            ::fstatat(parent, name.c_str(), &directories.emplace_back(Directory{part.path}).status,
                      AT_SYMLINK_NOFOLLOW);
        }
    });
    error = error != 0 ? error : tree.error;
    error = error != 0 || tree.is_all ? error : EFBIG;
    for (auto one = directories.rbegin(); one != directories.rend() && error == 0; ++one) {
        error = finish_directory(to, one->path, one->status);
    }
    return error;
}

int copy_directory(const Job& job)
{
    const Descriptor from = open_directory(job.parent, job.name);
    if (!from || ::mkdirat(job.to, job.path.c_str(), 0700) != 0) {
        return errno;
    }
    const Descriptor to = open_directory(job.to, job.path);
    return to ? copy_tree(from.get(), to.get(), job.by) : errno;
}

/// True if the checkpoint has not changed since find_checkpoints() found it.
bool is_as_found(const Found& found)
{
    struct stat status = {};
    if (::lstat(found.path.c_str(), &status) != 0 || status.st_ino != found.inode) {
        return false;
    }
    Found now = found;
    if (S_ISDIR(status.st_mode)) {
        const Descriptor directory = open_directory(AT_FDCWD, found.path);
        measure(now, directory ? walk(directory.get(), leave_as_it_is) : Tree{},
                modified_of(status));
    } else {
        const OpenFile opened = open_file(AT_FDCWD, found.path); // on NFS, this asks the server
        now.bytes = static_cast<std::uint64_t>(opened.status.st_size);
        now.modified = modified_of(opened.status);
    }
    return now == found;
}

void remove(const std::string& path)
{
    std::error_code error; // remaining files are detected when the name is needed
    std::filesystem::remove_all(path, error);
}

/// Renames a finished copy to its final name, replacing an older one.
int rename_over(const std::string& from, const std::string& to, const std::string& old)
{
    if (::rename(from.c_str(), to.c_str()) == 0) {
        return 0;
    }
    if (errno != ENOTEMPTY && errno != EEXIST && errno != EISDIR && errno != ENOTDIR) {
        return errno;
    }
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
        remove(from);
        return 0;
    }
    // NFS does not support RENAME_EXCHANGE.
    if (::rename(to.c_str(), old.c_str()) != 0 || ::rename(from.c_str(), to.c_str()) != 0) {
        return errno;
    }
    remove(old);
    return 0;
}

/// The paths of a copy until it is complete.
struct Names {
    std::string temporary;
    std::string old;
    std::string last;
};

int copy_and_rename(const Found& found, int directory, const std::string& temporary,
                    const Names& names, KeepBy by)
{
    const Job job{AT_FDCWD, found.path, directory, temporary, by};
    struct stat status = {};
    int error = result_of(::lstat(found.path.c_str(), &status));
    if (error == 0) {
        error = S_ISDIR(status.st_mode) ? copy_directory(job) : copy_file(job);
    }
    if (error == 0 && !is_as_found(found)) {
        error = ESTALE;
    }
    if (error == 0) {
        error = rename_over(names.temporary, names.last, names.old);
    }
    return error != 0 ? error : result_of(::fsync(directory));
}

Error can_not_keep(const Found& found, const std::string& directory, int error)
{
    if (error == ESTALE || error == ENOENT) {
        return fail(Error::Kind::busy,
                    fmt::format("{} changed while it was copied; try again", found.path));
    }
    return fail(Error::Kind::io, fmt::format("can't keep a copy of {} in {}: {}", found.path,
                                             directory, std::strerror(error)));
}

} // namespace

Result<std::string> keep(const Found& found, const std::string& directory, KeepBy by)
{
    const std::string name = found.path.substr(found.path.rfind('/') + 1);
    const std::string temporary = '.' + name + ".keeping";
    const Names names{directory + '/' + temporary, directory + "/." + name + ".old",
                      directory + '/' + name};
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
        return fail(Error::Kind::io,
                    fmt::format("can't make {}: {}", directory, std::strerror(errno)));
    }
    const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened) {
        return can_not_keep(found, directory, errno == ENOENT ? EIO : errno);
    }
    remove(names.temporary);
    remove(names.old);
    if (!is_as_found(found)) {
        return can_not_keep(found, directory, ESTALE);
    }
    if (const int error = copy_and_rename(found, opened.get(), temporary, names, by)) {
        remove(names.temporary);
        return can_not_keep(found, directory, error);
    }
    return names.last;
}

} // namespace gpuq::checkpoint
