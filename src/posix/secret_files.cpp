// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/secret_files.h"

#include "io/descriptor.h"
#include "io/trusted_path.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq {
namespace {

constexpr std::size_t k_largest = 1 << 20;
constexpr mode_t k_others = 077;

Error problem(const std::string& path)
{
    const int error = errno;
    const auto kind = error == ENOENT || error == ENOTDIR                   ? Error::Kind::missing
                      : error == EACCES || error == EPERM || error == ELOOP ? Error::Kind::denied
                                                                            : Error::Kind::io;
    return fail(kind, fmt::format("{}: {}", path, std::strerror(error)));
}

/// The file must belong to the caller and be accessible to no other user.
Result<void> check(int fd, const std::string& path, mode_t type)
{
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) {
        return problem(path);
    }
    if ((facts.st_mode & S_IFMT) != type) {
        return fail(Error::Kind::denied, fmt::format("{} has the wrong file type", path));
    }
    if (facts.st_uid != ::geteuid()) {
        return fail(Error::Kind::denied, fmt::format("{} belongs to user {}", path, facts.st_uid));
    }
    if ((facts.st_mode & k_others) != 0) {
        return fail(Error::Kind::denied,
                    fmt::format("{} is open to others (mode {:o}): chmod go= makes it yours alone",
                                path, facts.st_mode & 07777U));
    }
    return {};
}

Result<Descriptor> open_directory(const std::string& directory)
{
    const std::size_t slash = directory.rfind('/');
    if (slash == std::string::npos) {
        errno = ENOENT;
        return problem(directory);
    }
    TRY_ASSIGN(const Descriptor parent, open_trusted_parent(directory));
    Descriptor opened(::openat(parent.get(), directory.substr(slash + 1).c_str(),
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened) {
        return problem(directory);
    }
    TRY(check(opened.get(), directory, S_IFDIR));
    return opened;
}

Result<Descriptor> open_file(const std::string& directory, const std::string& name)
{
    const std::string path = directory + "/" + name;
    TRY_ASSIGN(const Descriptor place, open_directory(directory));
    Descriptor file(
        ::openat(place.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        return problem(path);
    }
    TRY(check(file.get(), path, S_IFREG));
    return file;
}

Result<std::string> read_whole(int fd, const std::string& path)
{
    std::string bytes;
    char piece[8192];
    while (true) {
        const ssize_t size = ::read(fd, piece, sizeof piece);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            return problem(path);
        }
        if (size == 0) {
            break;
        }
        bytes.append(piece, static_cast<std::size_t>(size));
        if (bytes.size() > k_largest) {
            return fail(Error::Kind::io, path + ": too large for credentials");
        }
    }
    ::explicit_bzero(piece, sizeof piece);
    return bytes;
}

} // namespace

Result<void> PosixSecretFiles::make_directory(const std::string& directory)
{
    for (std::size_t end = directory.find('/', 1); end != std::string::npos;
         end = directory.find('/', end + 1)) {
        (void)::mkdir(directory.substr(0, end).c_str(),
                      0700); // an error shows up in the last mkdir
    }
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
        return problem(directory);
    }
    TRY(open_directory(directory));
    return {};
}

Result<std::string> PosixSecretFiles::read(const std::string& directory, const std::string& name)
{
    const std::string path = directory + "/" + name;
    TRY_ASSIGN(const Descriptor file, open_file(directory, name));
    return read_whole(file.get(), path);
}

Result<std::string> PosixSecretFiles::read_own(const std::string& path)
{
    TRY_ASSIGN(const Descriptor file, open_trusted_file(path));
    TRY(check(file.get(), path, S_IFREG));
    return read_whole(file.get(), path);
}

Result<void> PosixSecretFiles::write(const std::string& directory, const std::string& name,
                                     std::string_view bytes)
{
    static std::atomic<unsigned> count{0};
    TRY_ASSIGN(const Descriptor place, open_directory(directory));
    const std::string part = fmt::format(".{}-{}-{}", name, ::getpid(), count++);
    ::unlinkat(place.get(), part.c_str(), 0); // left by a killed process with the same pid
    const Descriptor file(::openat(place.get(), part.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) {
        return problem(directory + "/" + part);
    }
    if (!write_all(file.get(), bytes) ||
        ::renameat(place.get(), part.c_str(), place.get(), name.c_str()) != 0) {
        Error why = problem(directory + "/" + name);
        ::unlinkat(place.get(), part.c_str(), 0);
        return why;
    }
    return {};
}

Result<void> PosixSecretFiles::move(const std::string& directory, const std::string& from,
                                    const std::string& to)
{
    TRY_ASSIGN(const Descriptor place, open_directory(directory));
    if (::renameat(place.get(), from.c_str(), place.get(), to.c_str()) != 0) {
        return problem(directory + "/" + to);
    }
    return {};
}

Result<Time> PosixSecretFiles::written_at(const std::string& directory, const std::string& name)
{
    TRY_ASSIGN(const Descriptor file, open_file(directory, name));
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0) {
        return problem(directory + "/" + name);
    }
    return Time(std::chrono::seconds(facts.st_mtim.tv_sec));
}

Result<void> PosixSecretFiles::remove(const std::string& directory, const std::string& name)
{
    const auto place = open_directory(directory);
    if (!place) {
        return place.error().kind == Error::Kind::missing ? Result<void>() : place.error();
    }
    if (::unlinkat(place->get(), name.c_str(), 0) != 0 && errno != ENOENT) {
        return problem(directory + "/" + name);
    }
    return {};
}

Result<void> PosixSecretFiles::remove_directory(const std::string& directory)
{
    auto place = open_directory(directory);
    if (!place) {
        return place.error().kind == Error::Kind::missing ? Result<void>() : place.error();
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(place->release()), ::closedir);
    while (const dirent* entry = list ? ::readdir(list.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            ::unlinkat(::dirfd(list.get()), entry->d_name, 0);
        }
    }
    if (::rmdir(directory.c_str()) != 0 && errno != ENOENT) {
        return problem(directory);
    }
    return {};
}

} // namespace gpuq
