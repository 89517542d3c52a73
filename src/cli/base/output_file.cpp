// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/output_file.h"

#include "io/descriptor.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

constexpr int k_directory_flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t k_mode = 0666; ///< less the umask
constexpr mode_t k_public_mode = 0644;
constexpr int k_most_links = 40; ///< the kernel's limit

Error trouble(const std::string& path, int error)
{
    const bool denied = error == EACCES || error == EPERM || error == EROFS;
    const bool missing = error == ENOENT || error == ENOTDIR;
    return fail(denied    ? Error::Kind::denied
                : missing ? Error::Kind::missing
                          : Error::Kind::io,
                fmt::format("can't write {}: {}", sanitised(path), std::strerror(error)));
}

bool others_may_write(const Descriptor& directory)
{
    struct stat facts {};
    constexpr mode_t k_group_and_others_write = 022;
    return ::fstat(directory.get(), &facts) != 0 ||
           (facts.st_mode & k_group_and_others_write) != 0 ||
           (facts.st_uid != 0 && facts.st_uid != ::geteuid());
}

/// Puts the components of a path before those that are still to be walked.
void put_before(std::deque<std::string>& arguments, std::string_view path)
{
    auto at = arguments.begin();
    while (!path.empty()) {
        const std::string_view word = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(word.size() + 1, path.size()));
        if (!word.empty() && word != ".") {
            at = std::next(arguments.insert(at, std::string(word)));
        }
    }
}

/// Walks a path from directory to directory, link by link.
class Walk {
public:
    explicit Walk(const std::string& path)
        : m_path(path)
    {
    }

    /// The directory and the name in it that the path leads to; the name need not exist.
    Result<std::pair<Descriptor, std::string>> to_the_end()
    {
        TRY(begin(m_path));
        while (!m_arguments.empty()) {
            std::string name = std::move(m_arguments.front());
            m_arguments.pop_front();
            struct stat facts {};
            const bool there =
                ::fstatat(m_directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
            if (!there && (errno != ENOENT || !m_arguments.empty())) {
                return trouble(m_path, errno);
            }
            if (there && S_ISLNK(facts.st_mode)) {
                TRY(follow(name));
            } else if (m_arguments.empty() && name != "..") {
                TRY(check_file(there ? facts.st_mode : S_IFREG));
                return std::pair(std::move(m_directory), std::move(name));
            } else {
                TRY(enter(name));
            }
        }
        return check_file(S_IFDIR).error();
    }

private:
    Result<void> begin(std::string_view path)
    {
        put_before(m_arguments, path);
        if (!m_directory || path.starts_with('/')) {
            m_directory = Descriptor(::open(path.starts_with('/') ? "/" : ".", k_directory_flags));
        }
        return m_directory ? Result<void>() : trouble(m_path, errno);
    }

    Result<void> enter(const std::string& name)
    {
        // O_NOFOLLOW: it may have become a link since the check.
        Descriptor next(::openat(m_directory.get(), name.c_str(), k_directory_flags));
        if (!next) {
            return trouble(m_path, errno);
        }
        m_directory = std::move(next);
        return {};
    }

    Result<void> follow(const std::string& name)
    {
        if (others_may_write(m_directory)) {
            return fail(Error::Kind::denied,
                        fmt::format("can't write {}: {} is a symbolic link in a directory writable "
                                    "by others; name the file itself",
                                    sanitised(m_path), sanitised(name)));
        }
        std::array<char, PATH_MAX> target{};
        const ssize_t size =
            ::readlinkat(m_directory.get(), name.c_str(), target.data(), target.size());
        if (size <= 0 || ++m_links > k_most_links) {
            return trouble(m_path, size < 0 ? errno : ELOOP);
        }
        return begin(std::string_view(target.data(), static_cast<std::size_t>(size)));
    }

    Result<void> check_file(mode_t mode) const
    {
        return S_ISREG(mode)
                   ? Result<void>()
                   : fail(Error::Kind::usage,
                          fmt::format("can't write {}: it is {}, not a file", sanitised(m_path),
                                      S_ISDIR(mode) ? "a directory" : "a device or a pipe"));
    }

    const std::string& m_path;
    std::deque<std::string> m_arguments; ///< still to be walked
    Descriptor m_directory;
    int m_links = 0;
};

/// A name that no other process on this machine uses; if it exists, the open fails.
std::string name_beside(const std::string& name)
{
    timespec now{};
    (void)::clock_gettime(CLOCK_REALTIME, &now);
    return fmt::format(".{}.{}.{}", name.substr(0, 200), ::getpid(), now.tv_nsec);
}

} // namespace

Result<OutputFile> OutputFile::at(const std::string& path)
{
    TRY_ASSIGN(auto place, Walk(path).to_the_end());
    auto& [directory, name] = place;
    if (::faccessat(directory.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
        return trouble(path, errno);
    }
    return OutputFile(path, std::move(directory), std::move(name));
}

Result<void> OutputFile::write(std::string_view content, Readers readers) const
{
    const std::string beside = name_beside(m_name);
    const Descriptor file(::openat(m_directory.get(), beside.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, k_mode));
    if (!file) {
        return trouble(m_path, errno);
    }
    // A rename replaces a link that has been created since; it does not follow it.
    const bool shown = readers == Readers::by_umask || ::fchmod(file.get(), k_public_mode) == 0;
    if (!shown || !write_all(file.get(), content) || ::fsync(file.get()) != 0 ||
        ::renameat(m_directory.get(), beside.c_str(), m_directory.get(), m_name.c_str()) != 0) {
        const int error = errno;
        (void)::unlinkat(m_directory.get(), beside.c_str(), 0);
        return trouble(m_path, error);
    }
    return {};
}

Result<OutputFile::Appended> OutputFile::append() const
{
    constexpr int k_flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    Descriptor file(::openat(m_directory.get(), m_name.c_str(), k_flags | O_EXCL, k_mode));
    const bool made = static_cast<bool>(file);
    if (!made && errno == EEXIST) {
        file = Descriptor(::openat(m_directory.get(), m_name.c_str(), k_flags, k_mode));
    }
    if (!file) {
        return trouble(m_path, errno);
    }
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return fail(Error::Kind::usage,
                    fmt::format("can't write {}: not a regular file", sanitised(m_path)));
    }
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return fail(Error::Kind::busy,
                    fmt::format("{} is being written by another gpuq", sanitised(m_path)));
    }
    return Appended{std::move(file), made};
}

bool OutputFile::was_read() const
{
    struct stat facts {};
    struct statvfs system {};
    if (::fstatat(m_directory.get(), m_name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        ::fstatvfs(m_directory.get(), &system) != 0 || (system.f_flag & ST_NOATIME) != 0) {
        return true;
    }
    return std::tie(facts.st_atim.tv_sec, facts.st_atim.tv_nsec) >
           std::tie(facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
}

void OutputFile::remove() const
{
    (void)::unlinkat(m_directory.get(), m_name.c_str(), 0);
}

} // namespace gpuq::cli
