// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/descriptor.h"
#include "log/audit.h"
#include "slurm/admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq {
namespace {

constexpr const char* k_script = "job_submit.lua";
constexpr const char* k_conf = "slurm.conf";
constexpr const char* k_directory = "gpuq";
constexpr mode_t k_directory_mode = 0755; // clients read the include file
constexpr mode_t k_file_mode = 0644;

Error io_error(const std::filesystem::path& path)
{
    const bool denied = errno == EACCES || errno == EPERM || errno == EROFS;
    return fail(denied ? Error::Kind::denied : Error::Kind::io,
                fmt::format("{}: {}{}", path.string(), std::strerror(errno),
                            denied ? " (a policy is applied by root or SlurmUser, on the "
                                     "controller's host)"
                                   : ""));
}

Result<void> make_directory(const std::filesystem::path& dir)
{
    if (::mkdir(dir.c_str(), k_directory_mode) == 0) {
        // The umask may have removed permissions that clients need.
        return ::chmod(dir.c_str(), k_directory_mode) == 0 ? Result<void>() : io_error(dir);
    }
    return errno == EEXIST ? Result<void>() : io_error(dir);
}

/// slurmctld loads a script if its modification time, in whole seconds, is later than that of the
/// previous one (22.05) or than the last load, which may have been in the current second.
bool set_later(const Descriptor& file, const std::string& before)
{
    struct stat there {};
    const std::time_t changed = ::stat(before.c_str(), &there) == 0 ? there.st_mtime : 0;
    const timespec later{std::max(std::time(nullptr) + 2, changed + 1), 0};
    const std::array<timespec, 2> times{later, later};
    return ::futimens(file.get(), times.data()) == 0;
}

Result<void> sync_directory(const std::filesystem::path& dir)
{
    const Descriptor directory(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return directory && ::fsync(directory.get()) == 0 ? Result<void>() : io_error(dir);
}

class Lock : public Admin::Hold {
public:
    explicit Lock(Descriptor file)
        : m_file(std::move(file))
    {
    }

private:
    Descriptor m_file;
};

} // namespace

std::string SlurmAdmin::path(const std::string& name)
{
    if (name == k_conf) {
        return m_conf.string();
    }
    if (name == k_directory) {
        return dir().string();
    }
    return ((name == k_script ? m_conf.parent_path() : dir()) / name).string();
}

Result<void> SlurmAdmin::record(const std::string& text)
{
    return log::audit(path("audit.log"), text);
}

Result<std::optional<std::string>> SlurmAdmin::read(const std::string& name)
{
    const std::string from = path(name);
    const Descriptor file(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        return errno == ENOENT ? Result<std::optional<std::string>>(std::nullopt) : io_error(from);
    }
    std::string text;
    std::array<char, 16384> bytes{};
    while (true) {
        const ssize_t size = ::read(file.get(), bytes.data(), bytes.size());
        if (size < 0 && errno != EINTR) {
            return io_error(from);
        }
        if (size == 0) {
            return std::optional(text);
        }
        text.append(bytes.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
    }
}

Result<std::optional<FileRights>> SlurmAdmin::rights(const std::string& name)
{
    const std::string of = path(name);
    struct stat there {};
    if (::stat(of.c_str(), &there) != 0) {
        return errno == ENOENT ? Result<std::optional<FileRights>>(std::nullopt) : io_error(of);
    }
    const passwd* const entry = ::getpwuid(there.st_uid);
    return std::optional(FileRights{
        entry != nullptr ? entry->pw_name : std::to_string(there.st_uid), there.st_mode & 07777U});
}

Result<void> SlurmAdmin::write(const std::string& name, const std::string& text)
{
    if (name == k_conf) {
        return fail(Error::Kind::internal, "slurm.conf is the site's");
    }
    TRY(make_directory(dir()));
    const std::string to = path(name);
    const std::string beside = to + ".new";
    (void)::unlink(beside.c_str());
    const Descriptor file(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, k_file_mode));
    if (!file || !write_all(file.get(), text) || ::fchmod(file.get(), k_file_mode) != 0 ||
        (name == k_script && !set_later(file, to)) || ::fsync(file.get()) != 0 ||
        ::rename(beside.c_str(), to.c_str()) != 0) {
        return io_error(to);
    }
    return sync_directory(std::filesystem::path(to).parent_path());
}

Result<void> SlurmAdmin::erase(const std::string& name)
{
    const std::string what = path(name);
    if (name == k_conf || (::unlink(what.c_str()) != 0 && errno != ENOENT)) {
        return io_error(what);
    }
    return {};
}

Result<void> SlurmAdmin::claim_directory()
{
    const std::string what = path(k_directory);
    const Descriptor there(::open(what.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // The owner first: the previous owner could undo the rest.
    const bool done = there && ::fchown(there.get(), ::geteuid(), static_cast<gid_t>(-1)) == 0 &&
                      ::fchmod(there.get(), k_directory_mode) == 0;
    return done ? Result<void>() : io_error(what);
}

Result<std::unique_ptr<Admin::Hold>> SlurmAdmin::hold()
{
    TRY(make_directory(dir()));
    const std::string name = (dir() / "lock").string();
    Descriptor file(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file) {
        return io_error(name);
    }
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        return fail(Error::Kind::busy, "another process is applying a policy");
    }
    return std::unique_ptr<Hold>(std::make_unique<Lock>(std::move(file)));
}

} // namespace gpuq
