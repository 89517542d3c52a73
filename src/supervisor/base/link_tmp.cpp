// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/link_tmp.h"

#include "core/fnv.h"
#include "io/trusted_path.h"
#include "log/log.h"
#include "supervisor/base/descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace gpuq::supervisor {
namespace {

constexpr std::string_view k_prefix = "gpuq-tmp-";
constexpr int k_tries = 10;

/// The host is part of the name: if the directory is shared, a lock may not be visible on other
/// hosts.
std::string own_prefix()
{
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    return fmt::format("{}{}-{:04x}-", k_prefix, ::geteuid(), fnv1a(host) & 0xffff);
}

/// The directory must not let other users replace its contents: like /tmp, it has the sticky bit,
/// or it is the user's own.
std::string place_of_node()
{
    constexpr const char* k_usual = "/tmp";
    const char* const given = std::getenv("TMPDIR");
    if (given == nullptr || *given != '/') {
        return k_usual;
    }
    const auto trusted = open_trusted_parent(fmt::format("{}/", given));
    if (!trusted) {
        log::warning(log::Part::supervisor, "TMPDIR of this node is not used: {}",
                     trusted.error().text);
        return k_usual;
    }
    return ::access(given, W_OK | X_OK) == 0 ? given : k_usual;
}

Descriptor open_directory(int parent, const char* name)
{
    return Descriptor(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Opens and locks a directory of this user that no process uses any more; the lock ends with the
/// descriptor.
Descriptor abandoned(int parent, const char* name)
{
    Descriptor directory = open_directory(parent, name);
    struct stat status = {};
    if (directory && (::fstat(directory.get(), &status) != 0 || status.st_uid != ::geteuid() ||
                      ::flock(directory.get(), LOCK_EX | LOCK_NB) != 0)) {
        directory.reset();
    }
    return directory;
}

std::vector<std::string> names_with(int directory, const std::string& prefix)
{
    std::vector<std::string> names;
    Descriptor again(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(again ? ::fdopendir(again.get()) : nullptr,
                                                      ::closedir);
    if (entries) {
        again.release(); // closed by closedir
    }
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
        if (std::string_view(entry->d_name).starts_with(prefix)) {
            names.emplace_back(entry->d_name);
        }
    }
    return names;
}

} // namespace

Result<LinkTmp> LinkTmp::make()
{
    const std::string place = place_of_node();
    for (int tries = 0; tries < k_tries; ++tries) {
        std::string path = place + "/" + own_prefix() + "XXXXXX";
        if (::mkdtemp(path.data()) == nullptr) {
            break;
        }
        Descriptor lock = open_directory(AT_FDCWD, path.c_str());
        struct stat status = {};
        // Another link of this user that ends just now may have taken it for an abandoned one.
        const bool is_held = lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 &&
                             ::fstat(lock.get(), &status) == 0 && status.st_nlink > 0;
        if (is_held) {
            ::fchmod(lock.get(), 0700);
            return LinkTmp(std::move(path), std::move(lock));
        }
    }
    return fail(Error::Kind::io, fmt::format("{}: {}", place, error_text(errno)));
}

void LinkTmp::remove(const RemoveTree& remove_tree) const
{
    const std::size_t slash = m_path.find_last_of('/');
    const Descriptor place(
        ::open(m_path.substr(0, slash).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!place) {
        return;
    }
    (void)remove_tree(place.get(), m_path.substr(slash + 1));
    for (const std::string& name : names_with(place.get(), own_prefix())) {
        if (const Descriptor held = abandoned(place.get(), name.c_str())) {
            (void)remove_tree(place.get(), name);
        }
    }
}

bool is_link_tmp(std::string_view path)
{
    return path.substr(path.find_last_of('/') + 1).starts_with(k_prefix);
}

} // namespace gpuq::supervisor
