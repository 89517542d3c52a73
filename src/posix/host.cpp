// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/host.h"

#include "io/local_socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <cstddef>
#include <fcntl.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace gpuq {
namespace {

bool is_program(const std::string& path)
{
    struct stat status = {};
    return ::access(path.c_str(), X_OK) == 0 && ::stat(path.c_str(), &status) == 0 &&
           S_ISREG(status.st_mode);
}

using Reach = DirectoryFacts::Reach;

struct FileSystem {
    long magic;
    const char* name;
    Reach reach;
};

/// From statfs(2), linux/magic.h and vendors' headers.
constexpr std::array k_file_systems = {
    FileSystem{0x6969, "nfs", Reach::network},
    FileSystem{0x0bd00bd0, "lustre", Reach::network},
    FileSystem{0x47504653, "gpfs", Reach::network},
    FileSystem{0x19830326, "beegfs", Reach::network},
    FileSystem{0x00c36400, "ceph", Reach::network},
    FileSystem{0xff534d42, "cifs", Reach::network},
    FileSystem{0xfe534d42, "smb2", Reach::network},
    FileSystem{0x5346414f, "afs", Reach::network},
    FileSystem{0xaad7aaea, "panfs", Reach::network},
    FileSystem{0x20030528, "orangefs", Reach::network},
    FileSystem{0x01161970, "gfs2", Reach::network},
    FileSystem{0x7461636f, "ocfs2", Reach::network},
    FileSystem{0x01021997, "9p", Reach::unknown},
    FileSystem{0x65735546, "fuse", Reach::unknown},
    FileSystem{0x0187, "autofs", Reach::unknown},
    FileSystem{0xef53, "ext4", Reach::local},
    FileSystem{0x58465342, "xfs", Reach::local},
    FileSystem{0x9123683e, "btrfs", Reach::local},
    FileSystem{0x2fc12fc1, "zfs", Reach::local},
    FileSystem{0xf2f52010, "f2fs", Reach::local},
    FileSystem{0x794c7630, "overlay", Reach::local},
    FileSystem{0x01021994, "tmpfs", Reach::memory},
    FileSystem{static_cast<long>(0x858458f6), "ramfs", Reach::memory},
};

void name_file_system(long magic, DirectoryFacts& facts)
{
    // On some architectures the number is a signed 32-bit value.
    const long number = static_cast<long>(static_cast<std::uint32_t>(magic));
    const auto row = std::find_if(k_file_systems.begin(), k_file_systems.end(),
                                  [&](const FileSystem& one) { return one.magic == number; });
    if (row == k_file_systems.end()) {
        facts.file_system = fmt::format("{:#x}", static_cast<std::uint32_t>(magic));
        return;
    }
    facts.file_system = row->name;
    facts.reach = row->reach;
}

/// The path itself or its nearest existing parent.
std::string nearest_existing(const std::string& path)
{
    std::string there = path;
    struct stat status = {};
    while (there.size() > 1 && ::stat(there.c_str(), &status) != 0 && errno == ENOENT) {
        there.resize(std::max<std::size_t>(there.rfind('/'), 1));
    }
    return there;
}

/// This user's quota on a file system whose quotas the kernel manages.
std::optional<DirectoryFacts::Quota> quota_of(const std::string& path)
{
    constexpr long k_quotactl_fd = 443; // since Linux 5.14, not in older headers
    const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    dqblk block = {};
    if (!directory || ::syscall(k_quotactl_fd, directory.get(), QCMD(Q_GETQUOTA, USRQUOTA),
                                ::getuid(), &block) != 0) {
        return std::nullopt;
    }
    const bool limited = (block.dqb_valid & QIF_BLIMITS) != 0 &&
                         (block.dqb_bhardlimit > 0 || block.dqb_bsoftlimit > 0);
    if (!limited) {
        return std::nullopt;
    }
    const std::uint64_t blocks =
        block.dqb_bsoftlimit > 0 ? block.dqb_bsoftlimit : block.dqb_bhardlimit;
    return DirectoryFacts::Quota{block.dqb_curspace, blocks * 1024};
}

} // namespace

Result<DirectoryFacts> PosixHost::directory(const std::string& path)
{
    if (!path.starts_with('/')) {
        return fail(Error::Kind::usage, fmt::format("'{}' is not an absolute path", path));
    }
    const std::string there = nearest_existing(path);
    struct stat status = {};
    struct statfs system = {};
    struct statvfs space = {};
    if (::stat(there.c_str(), &status) != 0 || ::statfs(there.c_str(), &system) != 0 ||
        ::statvfs(there.c_str(), &space) != 0) {
        return fail(Error::Kind::io, fmt::format("{}: {}", there, std::strerror(errno)));
    }
    if (!S_ISDIR(status.st_mode)) {
        return fail(Error::Kind::io, fmt::format("{}: {}", there, std::strerror(ENOTDIR)));
    }
    DirectoryFacts facts;
    facts.exists = there == path;
    facts.owner = status.st_uid;
    facts.mode = status.st_mode & 07777U;
    facts.writable = ::access(there.c_str(), W_OK | X_OK) == 0;
    name_file_system(system.f_type, facts);
    facts.total_bytes = std::uint64_t{space.f_blocks} * space.f_frsize;
    facts.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
    if (space.f_files > 0) { // file systems with dynamic inodes report 0
        facts.free_files = space.f_favail;
    }
    facts.quota = quota_of(there);
    return facts;
}

/// Uses an abstract socket name: local to this machine, bound by one process at a time, and
/// released however the process ends. Another user may bind it as well; then no process of this
/// user holds it.
bool PosixHost::hold(const std::string& name)
{
    if (m_held.contains(name)) {
        return true;
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string whole = fmt::format("gpuq-{}-{}", ::geteuid(), name);
    const std::size_t size = std::min(whole.size(), sizeof address.sun_path - 1);
    std::copy_n(whole.begin(), size, address.sun_path + 1);
    Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
    if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        return false;
    }
    m_held.emplace(name, std::move(socket));
    return true;
}

Result<Descriptor> PosixHost::connect_to(const std::vector<std::string>& names)
{
    return connect_to_first(names);
}

std::optional<std::string> PosixHost::program(const std::string& name)
{
    if (name.find('/') != std::string::npos) {
        return is_program(name) ? std::optional(name) : std::nullopt;
    }
    const char* const variable = std::getenv("PATH");
    std::string path = variable == nullptr ? "" : variable;
    while (!path.empty()) {
        const std::size_t end = std::min(path.find(':'), path.size());
        const std::string place = path.substr(0, end) + "/" + name;
        if (end > 0 && is_program(place)) {
            return place;
        }
        path.erase(0, end + 1);
    }
    return std::nullopt;
}

} // namespace gpuq
