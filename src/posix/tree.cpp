// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/tree.h"

#include "io/descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

namespace gpuq {
namespace {

/// Maximum depth; each level holds a descriptor.
constexpr int k_deepest = 200;

Descriptor open_at(int parent, const std::string& name)
{
    return Descriptor(
        ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// All names, read before any change; nullopt with errno set on failure.
std::optional<std::vector<std::string>> names_in(int directory)
{
    Descriptor again(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR* const entries = again ? ::fdopendir(again.get()) : nullptr;
    if (entries == nullptr) {
        return std::nullopt;
    }
    again.release(); // closedir() closes it
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(entries)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            names.emplace_back(name);
        }
    }
    const int error = errno;
    ::closedir(entries);
    errno = error;
    return error == 0 ? std::optional(std::move(names)) : std::nullopt;
}

/// Adds missing owner permissions, without which only root could empty the directory.
void make_writable(int parent, const std::string& name)
{
    struct stat status = {};
    constexpr mode_t k_needed = S_IRWXU;
    if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode) && (status.st_mode & k_needed) != k_needed) {
        (void)!::fchmodat(parent, name.c_str(), (status.st_mode & 07777) | k_needed,
                          AT_SYMLINK_NOFOLLOW);
    }
}

/// True if another file system is mounted on `directory`, whose contents must be kept.
bool is_mounted_over(int parent, int directory)
{
    struct statx above = {}, here = {};
    const auto ask = [](int fd, struct statx& facts) {
        return ::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID | STATX_INO, &facts) == 0;
    };
    if (!ask(parent, above) || !ask(directory, here)) {
        return true;
    }
    const bool has_ids = (above.stx_mask & here.stx_mask & STATX_MNT_ID) != 0;
    return above.stx_dev_major != here.stx_dev_major || above.stx_dev_minor != here.stx_dev_minor ||
           (has_ids && above.stx_mnt_id != here.stx_mnt_id);
}

std::optional<std::uint64_t> size_of(int parent, const std::string& name, int depth)
{
    const Descriptor directory = open_at(parent, name);
    const auto names = directory ? names_in(directory.get()) : std::nullopt;
    if (!names) {
        return std::nullopt;
    }
    std::uint64_t sum = 0;
    for (const std::string& entry : *names) {
        struct stat status = {};
        if (::fstatat(directory.get(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (S_ISREG(status.st_mode)) {
            sum += static_cast<std::uint64_t>(status.st_size);
        } else if (S_ISDIR(status.st_mode) && depth < k_deepest) {
            sum += size_of(directory.get(), entry, depth + 1).value_or(0);
        }
    }
    return sum;
}

bool remove_at(int parent, const std::string& name, int depth);

/// Removes a file or a directory tree.
bool remove_entry(int parent, const std::string& name, int depth)
{
    if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) {
        return true;
    }
    return (errno == EISDIR || errno == EPERM) && remove_at(parent, name, depth);
}

bool remove_at(int parent, const std::string& name, int depth)
{
    if (depth > k_deepest) {
        errno = ELOOP;
        return false;
    }
    int error = 0;
    {
        make_writable(parent, name);
        const Descriptor directory = open_at(parent, name);
        const auto names = directory ? names_in(directory.get()) : std::nullopt;
        if (!names) {
            return errno == ENOENT;
        }
        if (is_mounted_over(parent, directory.get())) {
            errno = EXDEV;
            return false;
        }
        for (const std::string& entry : *names) {
            if (!remove_entry(directory.get(), entry, depth + 1)) {
                error = errno;
            }
        }
    }
    if (error == 0 && (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT)) {
        return true;
    }
    errno = error != 0 ? error : errno;
    return false;
}

} // namespace

std::optional<std::uint64_t> size_of_tree(int parent, const std::string& name)
{
    return size_of(parent, name, 0);
}

bool remove_tree_at(int parent, const std::string& name)
{
    return remove_at(parent, name, 0);
}

} // namespace gpuq
