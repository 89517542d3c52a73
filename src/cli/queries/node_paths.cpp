// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/node_paths.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <sys/vfs.h>

namespace gpuq::cli {
namespace {

/// Each host has its own: a GPU node has drivers and compilers in them that a login host lacks. On
/// a login host that is also the nodes' NFS server they are even on the same file system as /home.
constexpr std::string_view k_of_each_host[] = {
    "/bin", "/boot", "/dev",  "/etc", "/gnu",  "/lib",  "/lib32", "/lib64", "/libx32",
    "/nix", "/opt",  "/proc", "/run", "/sbin", "/snap", "/sys",   "/usr"};

/// Types, as in statfs(2), of file systems that several hosts mount.
constexpr unsigned long k_network[] = {
    0x6969,     // NFS
    0x0bd00bd0, // Lustre
    0x47504653, // GPFS
    0x19830326, // BeeGFS
    0x00c36400, // CephFS
    0x5346414f, // AFS
    0xff534d42, // CIFS
    0xfe534d42, // SMB
    0xaad7aaea, // PanFS
    0x01161970, // GFS2
    0x7461636f, // OCFS2
};

bool is_within(std::string_view path, std::string_view directory)
{
    return path.starts_with(directory) &&
           (path.size() == directory.size() || path[directory.size()] == '/');
}

std::optional<std::string> real_path(const std::string& path)
{
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                           &std::free);
    return real ? std::optional<std::string>(real.get()) : std::nullopt;
}

/// The longest existing prefix of `path`, itself perhaps a link whose target is missing. Nothing if
/// it can't be determined.
std::optional<std::string> existing_prefix(std::string path)
{
    struct stat status = {};
    while (::lstat(path.c_str(), &status) != 0) {
        const std::size_t slash = path.find_last_of('/');
        const bool is_absent = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
        if (!is_absent || slash == std::string::npos) {
            return std::nullopt;
        }
        path.resize(slash == 0 ? 1 : slash);
    }
    return path;
}

/// As existing_prefix(), with links resolved. For a link whose target is missing, the existing part
/// of the path to the target.
std::optional<std::string> existing_part(std::string path)
{
    constexpr int k_most_links = 40; // as in Linux
    for (int links = 0; links < k_most_links; ++links) {
        const auto prefix = existing_prefix(std::move(path));
        auto real = prefix ? real_path(*prefix) : std::nullopt;
        std::error_code error;
        const auto target = real || !prefix ? std::filesystem::path()
                                            : std::filesystem::read_symlink(*prefix, error);
        if (target.empty()) {
            return real;
        }
        path = (std::filesystem::path(*prefix).parent_path() / target).string();
    }
    return std::nullopt;
}

bool is_on_network(const std::string& path)
{
    struct statfs system = {};
    return ::statfs(path.c_str(), &system) == 0 &&
           std::find(std::begin(k_network), std::end(k_network),
                     static_cast<unsigned long>(system.f_type) & 0xffffffffUL) !=
               std::end(k_network);
}

} // namespace

bool is_same_on_nodes(const std::string& path, const std::vector<std::string>& shared)
{
    const auto real = existing_part(path);
    if (!real || std::any_of(std::begin(k_of_each_host), std::end(k_of_each_host),
                             [&](auto own) { return is_within(*real, own); })) {
        return false;
    }
    const bool is_shared =
        std::any_of(shared.begin(), shared.end(), [&](const std::string& directory) {
            const auto root = directory.empty() ? std::nullopt : real_path(directory);
            return root && *root != "/" && is_within(*real, *root);
        });
    return is_shared || is_on_network(*real);
}

} // namespace gpuq::cli
