// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/store.h"

#include "io/descriptor.h"
#include "io/trusted_path.h"
#include "posix/store_paths.h"
#include "posix/tree.h"
#include "posix/unnamed_file.h"

#include <fmt/format.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace gpuq {
namespace {

constexpr std::size_t k_largest_small_file = 4 << 20;
/// Prefix of a directory that is being removed.
constexpr std::string_view k_removed = ".tmp-removed-";
/// What Slurm has last answered: without it, every command would query Slurm again.
constexpr std::string_view k_cache = "cache/";
/// NFS reports ESTALE if another host replaced the file between lookup and open; a new lookup
/// helps.
constexpr int k_stale_tries = 3;

Error unreadable(std::string_view root, std::string_view path, int error)
{
    Error reason = trouble("read", root, path, error);
    reason.kind = error == ENOENT ? Error::Kind::missing : Error::Kind::io;
    return reason;
}

/// Reads from `offset` up to `size` bytes or the end of the file; nullopt with errno set on
/// failure.
std::optional<std::string> read_range(int file, std::uint64_t offset, std::size_t size)
{
    std::string bytes(size, '\0');
    std::size_t got = 0;
    while (got < size) {
        const ssize_t n =
            ::pread(file, bytes.data() + got, size - got, static_cast<off_t>(offset + got));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return std::nullopt;
        }
        if (n == 0) {
            break;
        }
        got += static_cast<std::size_t>(n);
    }
    bytes.resize(got);
    return bytes;
}

/// Reads the whole file, even if it has grown since its size was taken, but at most one byte more
/// than the maximum of a small file.
std::optional<std::string> read_whole(int file, std::size_t expected)
{
    const std::size_t size = std::min(expected, k_largest_small_file) + 1;
    auto bytes = read_range(file, 0, size);
    const bool has_grown = bytes && bytes->size() == size && size <= k_largest_small_file;
    return has_grown ? read_range(file, 0, k_largest_small_file + 1) : bytes;
}

/// Removes leftovers of earlier removals in this directory. Failures are left for the next call.
void sweep(int directory)
{
    DIR* const entries = ::fdopendir(::openat(directory, ".", k_directory_flags));
    std::vector<std::string> left;
    while (const dirent* entry = entries == nullptr ? nullptr : ::readdir(entries)) {
        if (std::string_view(entry->d_name).starts_with(k_removed)) {
            left.emplace_back(entry->d_name);
        }
    }
    if (entries != nullptr) {
        ::closedir(entries);
    }
    for (const std::string& name : left) {
        (void)remove_tree_at(directory, name);
    }
}

/// Removes temporary files whose writer has died. Failures are left for the next call.
void remove_abandoned(int directory, const std::vector<std::string>& names)
{
    constexpr std::time_t k_day = 24 * 60 * 60;
    for (const std::string& name : names) {
        struct stat status = {};
        if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            std::time(nullptr) - status.st_mtime > k_day) {
            ::unlinkat(directory, name.c_str(), 0); // fails for a directory
        }
    }
}

/// Creates `root` and its parents with mode 0700, as the XDG specification requires.
bool make_root(const std::string& root)
{
    for (std::size_t slash = root.find('/', 1);; slash = root.find('/', slash + 1)) {
        const std::string part = root.substr(0, slash);
        if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
            // Only the whole path must exist: a parent may be unreadable for this user.
            struct stat status = {};
            if (const int error = errno; ::stat(part.c_str(), &status) != 0) {
                errno = error;
                return false;
            }
        }
        if (slash == std::string::npos) {
            return true;
        }
    }
}

std::string without_trailing_slashes(std::string path)
{
    while (path.size() > 1 && path.ends_with('/')) {
        path.pop_back();
    }
    return path;
}

Result<void> check_owner(const std::string& root, int directory)
{
    struct stat status = {};
    if (::fstat(directory, &status) != 0 || status.st_uid != ::geteuid()) {
        return fail(
            Error::Kind::denied,
            fmt::format("the state directory {} belongs to user {}, not to you: name another "
                        "one with GPUQ_STATE_DIR",
                        root, status.st_uid));
    }
    return {};
}

Error unsafe(std::string_view path)
{
    return fail(Error::Kind::internal,
                fmt::format("not a path in the state directory: '{}'", path));
}

/// Repeats `attempt` while it fails because another host replaced a file (ESTALE).
template <typename Attempt>
auto fresh(Attempt attempt)
{
    for (int tries = 1;; ++tries) {
        auto result = attempt();
        if (result || errno != ESTALE || tries == k_stale_tries) {
            return result;
        }
    }
}

/// The data must be on disk before the name exists, in case of a crash.
Result<void> put(const std::string& root, const std::string& path, std::string_view content,
                 Naming naming)
{
    UnnamedFile file(root, path, content);
    TRY(file.written());
    TRY(file.sync());
    TRY(file.name(naming));
    return file.sync_directories();
}

} // namespace

/// Whether a path may be changed.
Result<void> PosixStore::check_change(std::string_view path) const
{
    if (!is_safe(path)) {
        return unsafe(path);
    }
    if (m_access == Access::full || path.starts_with(k_cache)) {
        return {};
    }
    return fail(Error::Kind::denied,
                fmt::format("{}/{} can't be changed: the state directory is open for reading only",
                            m_root, path));
}

Result<std::unique_ptr<PosixStore>> PosixStore::open(const std::string& given_root, Access access)
{
    const std::string root = without_trailing_slashes(given_root);
    if (!root.starts_with('/')) {
        return fail(Error::Kind::usage,
                    fmt::format("the state directory '{}' is not an absolute path", root));
    }
    auto directory = open_trusted_directory(root);
    if (!directory && directory.error().kind == Error::Kind::missing) {
        if (access == Access::read_only) {
            return std::unique_ptr<PosixStore>(new PosixStore(root, access));
        }
        if (!make_root(root)) {
            return fail(Error::Kind::io, fmt::format("can't make the state directory {}: {}", root,
                                                     std::strerror(errno)));
        }
        directory = open_trusted_directory(root);
    }
    if (!directory) {
        return fail(
            directory.error().kind,
            fmt::format("can't use the state directory: {}; GPUQ_STATE_DIR names another one",
                        directory.error().text));
    }
    TRY(check_owner(root, directory->get()));
    return std::unique_ptr<PosixStore>(new PosixStore(root, access));
}

Result<std::string> PosixStore::read(const std::string& path)
{
    if (!is_safe(path)) {
        return unsafe(path);
    }
    struct stat status = {};
    auto bytes = fresh([&]() -> std::optional<std::string> {
        const Descriptor file = open_file(m_root, path, status);
        return file ? read_whole(file.get(), static_cast<std::size_t>(status.st_size))
                    : std::nullopt;
    });
    if (!bytes) {
        return unreadable(m_root, path, errno);
    }
    if (bytes->size() > k_largest_small_file) {
        return unreadable(m_root, path, EFBIG);
    }
    return *std::move(bytes);
}

Result<std::string> PosixStore::read_at(const std::string& path, std::uint64_t offset,
                                        std::size_t size)
{
    if (!is_safe(path)) {
        return unsafe(path);
    }
    struct stat status = {};
    auto bytes = fresh([&]() -> std::optional<std::string> {
        const Descriptor file = open_file(m_root, path, status);
        if (!file) {
            return std::nullopt;
        }
        const auto end = static_cast<std::uint64_t>(status.st_size);
        const std::uint64_t there = end - std::min(end, offset);
        return read_range(file.get(), offset, std::min<std::uint64_t>(size, there));
    });
    if (!bytes) {
        return unreadable(m_root, path, errno);
    }
    return *std::move(bytes);
}

Result<std::uint64_t> PosixStore::size(const std::string& path)
{
    if (!is_safe(path)) {
        return unsafe(path);
    }
    struct stat status = {};
    if (!fresh([&] { return open_file(m_root, path, status); })) {
        return unreadable(m_root, path, errno);
    }
    return static_cast<std::uint64_t>(status.st_size);
}

Result<void> PosixStore::write(const std::string& path, std::string_view content)
{
    TRY(check_change(path));
    return put(m_root, path, content, Naming::replaces);
}

Result<void> PosixStore::write_once(const std::string& path, std::string_view content)
{
    TRY(check_change(path));
    return put(m_root, path, content, Naming::claims);
}

Result<void> PosixStore::write_together(const std::vector<NewFile>& files)
{
    std::vector<std::unique_ptr<UnnamedFile>> unnamed;
    for (const NewFile& file : files) {
        TRY(check_change(file.path));
        unnamed.push_back(std::make_unique<UnnamedFile>(m_root, file.path, file.content));
        TRY(unnamed.back()->written());
        TRY(unnamed.back()->flush());
    }
    for (const auto& file : unnamed) {
        TRY(file->name(Naming::claims));
    }
    // With all names in place, the first fsync commits everything on file systems with a journal.
    for (const auto& file : unnamed) {
        TRY(file->sync());
    }
    std::set<std::string_view> synced;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (synced.insert(split_last(files[i].path).first).second) { // the first one made it
            TRY(unnamed[i]->sync_directories());
        }
    }
    return {};
}

Result<void> PosixStore::append_line(const std::string& path, std::string_view line)
{
    TRY(check_change(path));
    const auto [parent, name] = split_last(path);
    std::vector<Descriptor> changed;
    const Descriptor directory = open_directory(m_root, parent, Missing::is_made, &changed);
    const Descriptor file(
        directory
            ? ::openat(directory.get(), std::string(name).c_str(),
                       O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600)
            : -1);
    struct stat status = {};
    if (!file || ::fstat(file.get(), &status) != 0) {
        return trouble("write", m_root, path, errno);
    }
    char last = '\n';
    if (status.st_size > 0 && ::pread(file.get(), &last, 1, status.st_size - 1) != 1) {
        return trouble("write", m_root, path, errno);
    }
    const std::string text =
        fmt::format("{}{}\n", last == '\n' ? "" : "\n", line); // after an incomplete line
    if (!write_all(file.get(), text) || ::fsync(file.get()) != 0 ||
        (status.st_size == 0 && ::fsync(directory.get()) != 0)) {
        return trouble("write", m_root, path, errno);
    }
    for (const Descriptor& made : changed) {
        if (::fsync(made.get()) != 0) {
            return trouble("write", m_root, path, errno);
        }
    }
    return {};
}

Result<void> PosixStore::make_dir(const std::string& path)
{
    TRY(check_change(path));
    if (!open_directory(m_root, path, Missing::is_made)) {
        return trouble("make", m_root, path, errno);
    }
    return {};
}

Result<std::vector<std::string>> PosixStore::list(const std::string& path)
{
    if (!is_safe(path)) {
        return unsafe(path);
    }
    Descriptor directory = open_directory(m_root, path, Missing::is_error);
    DIR* entries = directory ? ::fdopendir(directory.get()) : nullptr;
    if (entries == nullptr) {
        return unreadable(m_root, path, errno);
    }
    directory.release(); // closedir() closes it
    std::vector<std::string> names, temporary;
    errno = 0;
    while (const dirent* entry = ::readdir(entries)) {
        const std::string_view name = entry->d_name;
        if (name.starts_with(k_temporary)) {
            temporary.emplace_back(name);
        } else if (name != "." && name != "..") {
            names.emplace_back(name);
        }
    }
    const int error = errno;
    if (m_access == Access::full) {
        remove_abandoned(::dirfd(entries), temporary);
    }
    ::closedir(entries);
    if (error != 0) {
        return unreadable(m_root, path, error);
    }
    return names;
}

Result<void> PosixStore::remove(const std::string& path)
{
    TRY(check_change(path));
    if (path.empty()) {
        return unsafe(path);
    }
    const auto [parent, name] = split_last(path);
    const Descriptor directory = open_directory(m_root, parent, Missing::is_error);
    const std::string word(name);
    bool gone = directory && ::unlinkat(directory.get(), word.c_str(), 0) == 0;
    if (directory && !gone && (errno == EISDIR || errno == EPERM)) {
        gone = ::unlinkat(directory.get(), word.c_str(), AT_REMOVEDIR) == 0;
    }
    if (!gone && errno != ENOENT) {
        return trouble("remove", m_root, path, errno);
    }
    return {};
}

Result<Descriptor> PosixStore::try_lock(const std::string& path, std::uint32_t byte)
{
    TRY(check_change(path));
    const auto [parent, name] = split_last(path);
    const Descriptor directory = open_directory(m_root, parent, Missing::is_made);
    Descriptor file(directory
                        ? ::openat(directory.get(), std::string(name).c_str(),
                                   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600)
                        : -1);
    if (!file) {
        return trouble("lock", m_root, path, errno);
    }
    struct flock range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = byte;
    range.l_len = 1;
    if (::fcntl(file.get(), F_OFD_SETLK, &range) != 0) {
        return errno == EAGAIN || errno == EACCES
                   ? fail(Error::Kind::busy, fmt::format("{} is locked", path))
                   : trouble("lock", m_root, path, errno);
    }
    return file;
}

Result<std::uint64_t> PosixStore::tree_size(const std::string& path)
{
    if (!is_safe(path) || path.empty()) {
        return unsafe(path);
    }
    const auto [parent, name] = split_last(path);
    const Descriptor directory = open_directory(m_root, parent, Missing::is_error);
    const auto size = directory ? size_of_tree(directory.get(), std::string(name)) : std::nullopt;
    if (!size) {
        return unreadable(m_root, path, errno);
    }
    return *size;
}

Result<void> PosixStore::remove_tree(const std::string& path)
{
    TRY(check_change(path));
    if (path.empty()) {
        return unsafe(path);
    }
    const auto [parent, name] = split_last(path);
    const Descriptor directory = open_directory(m_root, parent, Missing::is_error);
    if (!directory) {
        return errno == ENOENT ? Result<void>() : trouble("remove", m_root, path, errno);
    }
    const std::string word(name);
    struct stat status = {};
    if (::fstatat(directory.get(), word.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISDIR(status.st_mode)) {
        return trouble("remove", m_root, path, ENOTDIR);
    }
    const std::string doomed = std::string(k_removed) + temporary_name();
    if (::renameat(directory.get(), word.c_str(), directory.get(), doomed.c_str()) != 0 &&
        errno != ENOENT) {
        return trouble("remove", m_root, path, errno);
    }
    ::fsync(directory.get()); // otherwise a crash could bring back a half-removed tree
    if (!remove_tree_at(directory.get(), doomed)) {
        return trouble("remove", m_root, path, errno);
    }
    sweep(directory.get());
    return {};
}

} // namespace gpuq
