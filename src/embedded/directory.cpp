// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/directory.h"

#include "embedded/process.h"
#include "io/trusted_path.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace gpuq::embedded {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t k_room_mib = 200;
constexpr int k_last_lines = 6;

Error io_error(const std::string& what)
{
    return fail(Error::Kind::io, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// slurm.conf has no quoting.
bool fits_slurm_conf(const std::string& path)
{
    return std::all_of(path.begin(), path.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               std::string_view("/._-+@:").find(c) != std::string_view::npos;
    });
}

Result<void> check_owner(const std::string& dir)
{
    struct stat facts {};
    if (lstat(dir.c_str(), &facts) != 0) {
        return io_error(dir);
    }
    if (!S_ISDIR(facts.st_mode)) {
        return fail(Error::Kind::denied,
                    fmt::format("{} is not a directory; choose another --dir", dir));
    }
    if (facts.st_uid != geteuid()) {
        return fail(Error::Kind::denied, fmt::format("{} belongs to another user; choose another "
                                                     "--dir",
                                                     dir));
    }
    if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return fail(Error::Kind::denied,
                    fmt::format("{0} can be written by others; `chmod go-w {0}` or choose another "
                                "--dir",
                                dir));
    }
    TRY(open_trusted_directory(dir));
    return {};
}

Result<void> write_all(int fd, std::string_view content, const std::string& path)
{
    while (!content.empty()) {
        const ssize_t written = write(fd, content.data(), content.size());
        if (written < 0 && errno != EINTR) {
            return io_error(fmt::format("can not write {}", path));
        }
        content.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    }
    return fsync(fd) == 0 ? Result<void>() : io_error(fmt::format("can not write {}", path));
}

bool runs_programs(const std::string& dir)
{
    struct statvfs facts {};
    return statvfs(dir.c_str(), &facts) == 0 && (facts.f_flag & ST_NOEXEC) == 0 &&
           access(dir.c_str(), W_OK) == 0;
}

bool is_at(int fd, const std::string& path)
{
    struct stat of_fd {};
    struct stat of_path {};
    return fstat(fd, &of_fd) == 0 && lstat(path.c_str(), &of_path) == 0 &&
           of_fd.st_ino == of_path.st_ino && of_fd.st_dev == of_path.st_dev;
}

} // namespace

Result<std::string> open_dir(const std::string& dir)
{
    constexpr mode_t k_readable = 022;
    const bool is_for_all = geteuid() == 0;
    const mode_t before = is_for_all ? umask(k_readable) : 0;
    std::error_code failed;
    const fs::path above = fs::path(dir).parent_path();
    fs::create_directories(above.parent_path(), failed);
    if (above.filename() == "gpuq" && !is_for_all) {
        mkdir(above.c_str(), 0700); // the state directory is private
    }
    fs::create_directories(dir, failed);
    if (is_for_all) {
        umask(before);
    }
    if (failed) {
        return fail(Error::Kind::io, fmt::format("can not make {}: {}; choose another --dir", dir,
                                                 failed.message()));
    }
    const std::string real = fs::canonical(dir, failed).string();
    if (failed || !fits_slurm_conf(real)) {
        return fail(Error::Kind::usage,
                    fmt::format("{}: slurm.conf can not hold such a path; choose a --dir of plain "
                                "letters and digits",
                                dir));
    }
    TRY(check_owner(real));
    return real;
}

Result<Lock> Lock::take(const Places& places)
{
    const std::string path = places.lock_file();
    Lock lock(-1);
    const auto taken = [&] {
        if (lock.m_fd < 0) {
            lock.m_fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        }
        if (lock.m_fd < 0) {
            return true;
        }
        if (flock(lock.m_fd, LOCK_EX | LOCK_NB) != 0) {
            return false;
        }
        if (is_at(lock.m_fd, path)) {
            return true;
        }
        close(std::exchange(lock.m_fd, -1)); // its holder has removed the file: open the new one
        return false;
    };
    if (!wait_for(taken, in(std::chrono::seconds(30)))) {
        return fail(Error::Kind::busy, fmt::format("another `gpuq cluster` is at work in {}; try "
                                                   "again when it is done",
                                                   places.dir));
    }
    if (lock.m_fd < 0) {
        return io_error(fmt::format("can not write {}", path));
    }
    return lock;
}

Lock::Lock(Lock&& other) noexcept
    : m_fd(std::exchange(other.m_fd, -1))
{
}

Lock::~Lock()
{
    if (m_fd >= 0) {
        close(m_fd);
    }
}

Result<std::string> make_run_dir()
{
    for (const std::string base : {"/tmp", "/var/tmp"}) {
        std::string path = base + "/gpuq-cluster-XXXXXX";
        if (runs_programs(base) && mkdtemp(path.data()) != nullptr) {
            chmod(path.c_str(), 0711);
            return path;
        }
    }
    return io_error("can not make a directory for sockets in /tmp or /var/tmp");
}

void remove_run_dir(const std::string& run)
{
    struct stat facts {};
    const bool named =
        run.starts_with("/tmp/gpuq-cluster-") || run.starts_with("/var/tmp/gpuq-cluster-");
    if (named && lstat(run.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
        facts.st_uid == geteuid()) {
        std::error_code ignored;
        fs::remove_all(run, ignored);
    }
}

Result<void> write_file(const std::string& path, std::string_view content, unsigned mode)
{
    const std::string temporary = path + ".new";
    unlink(temporary.c_str());
    const int fd =
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) {
        return io_error(fmt::format("can not write {}", path));
    }
    fchmod(fd, mode); // independent of the umask
    auto written = write_all(fd, content, path);
    close(fd);
    if (written && rename(temporary.c_str(), path.c_str()) != 0) {
        written = io_error(fmt::format("can not write {}", path));
    }
    if (!written) {
        unlink(temporary.c_str());
    }
    return written;
}

Result<void> make_dir(const std::string& path, unsigned mode)
{
    if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
        return io_error(fmt::format("can not make {}", path));
    }
    return chmod(path.c_str(), mode) == 0 ? Result<void>()
                                          : io_error(fmt::format("can not use {}", path));
}

Result<State> read_state(const Places& places)
{
    std::error_code failed;
    if (!fs::exists(places.state_file(), failed)) {
        return fail(Error::Kind::missing, fmt::format("no cluster in {}", places.dir));
    }
    auto state = parse_state(content_of(places.state_file()));
    if (!state) {
        return fail(Error::Kind::usage, fmt::format("{}: {}; made by another gpuq?",
                                                    places.state_file(), state.error().text));
    }
    return state;
}

Result<void> write_state(const Places& places, const State& state)
{
    return write_file(places.state_file(), to_text(state), 0644);
}

Result<void> check_room(const std::string& dir)
{
    struct statvfs facts {};
    if (statvfs(dir.c_str(), &facts) != 0) {
        return io_error(dir);
    }
    const std::uint64_t free_mib = facts.f_bavail * facts.f_frsize / (1024 * 1024);
    if (free_mib < k_room_mib) {
        return fail(Error::Kind::io, fmt::format("the disk of {} is full: {} MiB left, a cluster "
                                                 "needs {}; make room or choose another --dir",
                                                 dir, free_mib, k_room_mib));
    }
    return {};
}

Result<void> purge_dir(const Places& places)
{
    std::error_code failed;
    for (const std::string& path :
         {places.database(), places.database() + ".new", places.controller_state(),
          places.log_dir(), places.devices(), places.slurm_conf(), places.gres_conf(),
          places.cgroup_conf(), places.slurmdbd_conf(), places.policy_dir(),
          places.job_submit_lua(), places.audit_log(), places.audit_log() + ".1",
          places.state_file(), places.lock_file()}) {
        fs::remove_all(path, failed);
        if (failed) {
            return fail(Error::Kind::io,
                        fmt::format("can not remove {}: {}", path, failed.message()));
        }
    }
    fs::remove(places.dir, failed); // fails if other files are in it
    const fs::path above = fs::path(places.dir).parent_path();
    if (above.filename() == "gpuq") { // created for it (/var/lib/gpuq); fails if not empty
        fs::remove(above, failed);
    }
    return {};
}

std::string last_message(const std::string& log_path)
{
    constexpr std::array k_noise{"NOTE: Trying backup",
                                 "Could not open",
                                 "No state",
                                 "can not load PMIx",
                                 "MPI: Cannot",
                                 "specified plugin name for mpi",
                                 "MailProg"};
    std::istringstream file(content_of(log_path));
    std::deque<std::string> lines;
    for (std::string line; std::getline(file, line);) {
        const bool noise = std::any_of(k_noise.begin(), k_noise.end(), [&](const char* word) {
            return line.find(word) != std::string::npos;
        });
        std::replace_if(
            line.begin(), line.end(),
            [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }, '?');
        if (!noise && !line.empty()) {
            lines.push_back("    " + line.substr(0, 300));
        }
        if (lines.size() > k_last_lines) {
            // Lines after a fatal error only comment on it.
            if (lines.front().find("FATAL") != std::string::npos) {
                lines.pop_back();
                break;
            }
            lines.pop_front();
        }
    }
    return fmt::format("{}", fmt::join(lines, "\n"));
}

} // namespace gpuq::embedded
