// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/private_dir.h"

#include "core/user_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq {
namespace {

constexpr std::string_view k_parent = "/tmp/";
constexpr std::string_view k_gpuq = "gpuq-";
constexpr int k_directory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t k_others = 077;
/// Retries: a cleanup holds the lock while it removes the directory.
constexpr int k_tries = 100;
constexpr int k_pause_ms = 10;

Error io_error(const std::string& path)
{
    return fail(Error::Kind::io, fmt::format("{}: {}", path, std::strerror(errno)));
}

Error not_ours(const std::string& path)
{
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) {
        return io_error(path);
    }
    return fail(Error::Kind::denied,
                facts.st_uid != ::geteuid()
                    ? fmt::format("{} belongs to user {}", path, user_name(facts.st_uid))
                    : fmt::format("{} is not a directory with mode 700", path));
}

bool is_own(const struct stat& facts)
{
    return S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid();
}

} // namespace

Result<PrivateDir> make_private_dir_at(const std::string& path)
{
    for (int tries = 0; tries < k_tries; ++tries) {
        const bool made = ::mkdir(path.c_str(), 0700) == 0;
        if (!made && errno != EEXIST) {
            return io_error(path);
        }
        Descriptor directory(::open(path.c_str(), k_directory));
        if (!directory && errno == ENOENT) {
            continue; // removed by a cleanup in between
        }
        struct stat facts {};
        if (!directory || ::fstat(directory.get(), &facts) != 0 || !is_own(facts) ||
            (facts.st_mode & k_others) != 0) {
            return not_ours(path);
        }
        const bool locked = ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
        if (locked && ::fstat(directory.get(), &facts) == 0 && facts.st_nlink > 0) {
            return PrivateDir{path, std::move(directory)};
        }
        if (!locked) {
            ::poll(nullptr, 0, k_pause_ms);
        }
    }
    return fail(Error::Kind::busy, fmt::format("{}: another process of this user holds it", path));
}

Result<PrivateDir> make_private_dir(std::string_view purpose)
{
    for (int tries = 0; tries < k_tries; ++tries) {
        std::string path = private_dir_prefix(purpose, ::geteuid()) + "XXXXXX";
        if (::mkdtemp(path.data()) == nullptr) {
            return io_error(path);
        }
        if (auto made = make_private_dir_at(path)) {
            return made;
        }
    }
    return fail(Error::Kind::io, fmt::format("no private directory in {}", k_parent));
}

std::string private_dir_prefix(std::string_view purpose, unsigned uid)
{
    return fmt::format("{}{}{}-{}-", k_parent, k_gpuq, purpose, uid);
}

bool is_private_dir_name(std::string_view name, unsigned uid)
{
    if (!name.starts_with(k_gpuq)) {
        return false;
    }
    const std::string_view rest = name.substr(k_gpuq.size());
    const std::size_t end = rest.find('-');
    return end != std::string_view::npos && rest.substr(end).starts_with(fmt::format("-{}-", uid));
}

Descriptor lock_leftover(int parent, const char* name)
{
    Descriptor directory(::openat(parent, name, k_directory | O_NONBLOCK));
    struct stat facts {};
    if (directory && (::fstat(directory.get(), &facts) != 0 || !is_own(facts) ||
                      ::flock(directory.get(), LOCK_EX | LOCK_NB) != 0)) {
        directory.reset();
    }
    return directory;
}

} // namespace gpuq
