// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/aside.h"

#include "checkpoint/directory.h"
#include "checkpoint/tree.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include <fcntl.h>

namespace gpuq::checkpoint {
namespace {

constexpr int k_most_names = 1000;

/// False if it fails; errno has the reason, EEXIST if the name is taken.
bool rename_to_new(const std::string& from, const std::string& to)
{
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
        return true;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return false;
    }
    struct stat status = {}; // NFS does not support the flag
    if (::lstat(to.c_str(), &status) == 0) {
        errno = EEXIST;
        return false;
    }
    return ::rename(from.c_str(), to.c_str()) == 0;
}

std::optional<std::string> rename_aside(const std::string& path)
{
    for (int number = 1; number <= k_most_names; ++number) {
        const std::string name =
            number == 1 ? path + ".incomplete" : fmt::format("{}.incomplete-{}", path, number);
        if (rename_to_new(path, name)) {
            return name;
        }
        if (errno != EEXIST) {
            return std::nullopt;
        }
    }
    return std::nullopt;
}

bool is_one_checkpoint(const Found& found)
{
    struct stat status = {};
    if (::lstat(found.path.c_str(), &status) != 0 || status.st_ino != found.inode) {
        return false;
    }
    if (!S_ISDIR(status.st_mode)) {
        return S_ISREG(status.st_mode);
    }
    const Descriptor directory = open_directory(AT_FDCWD, found.path);
    return directory && !holds_several(walk(directory.get(), leave_as_it_is).parts);
}

} // namespace

std::vector<std::string> put_aside(const std::vector<Found>& found)
{
    std::vector<std::string> names;
    for (const Found& one : found) {
        if (one.verdict == Verdict::whole) {
            break;
        }
        if (one.verdict != Verdict::incomplete || !is_one_checkpoint(one)) {
            continue;
        }
        if (auto name = rename_aside(one.path)) {
            names.push_back(*std::move(name));
        }
    }
    return names;
}

} // namespace gpuq::checkpoint
