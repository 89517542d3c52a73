// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/trusted_path.h"

#include "core/user_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <string_view>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>

namespace gpuq {
namespace {

constexpr int k_most_links = 40;
constexpr mode_t k_group_and_others_write = 022;
constexpr uid_t k_overflow = 65534;

enum class Role { way, link, goal };

/// File system numbers of OpenAFS and of the kernel's AFS client, where access is controlled by
/// ACLs.
bool is_on_afs(int fd)
{
    struct statfs system {};
    return ::fstatfs(fd, &system) == 0 &&
           (system.f_type == 0x5346414f || system.f_type == 0x6b414653);
}

/// True in a user namespace that does not map root: root's files then appear as owned by the
/// overflow user.
bool root_has_no_number()
{
    std::ifstream map("/proc/self/uid_map");
    unsigned long first = 0, outside = 0, count = 0;
    while (map >> first >> outside >> count) {
        if (first == 0) {
            return outside != 0; // is 0 mapped to another user?
        }
    }
    return true;
}

void put_before(std::deque<std::string>& names, std::string_view path)
{
    auto at = names.begin();
    while (!path.empty()) {
        const std::string_view name = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(name.size() + 1, path.size()));
        if (!name.empty() && name != ".") {
            at = std::next(names.insert(at, std::string(name)));
        }
    }
}

class Walk {
public:
    explicit Walk(const std::string& path, std::optional<unsigned> also = std::nullopt,
                  Role goal = Role::goal)
        : m_path(path)
        , m_also(also)
        , m_goal(goal)
    {
    }

    /// Follows the path to its end, which is opened with `flags`.
    Result<Descriptor> open(int flags)
    {
        put_before(m_names, m_path);
        if (!m_path.starts_with('/')) {
            std::array<char, PATH_MAX> directory{};
            if (::getcwd(directory.data(), directory.size()) == nullptr) {
                return problem();
            }
            put_before(m_names, directory.data());
        }
        TRY(to_root());
        while (!m_names.empty()) {
            const std::string name = std::exchange(m_names.front(), {});
            m_names.pop_front();
            TRY(step(name, m_names.empty() ? flags : O_PATH));
        }
        if (!m_at_goal) { // path is / or ends with ..
            m_here.reset(::openat(m_here.get(), ".", flags | O_CLOEXEC));
            TRY(check_entry(m_goal));
        }
        return std::move(m_here);
    }

private:
    Error problem() const
    {
        const int error = errno;
        const auto kind =
            error == ENOENT || error == ENOTDIR ? Error::Kind::missing : Error::Kind::io;
        return fail(kind, fmt::format("{}: {}", m_path, std::strerror(error)));
    }

    bool is_trusted(uid_t owner) const
    {
        return owner == 0 || owner == ::geteuid() || owner == m_also ||
               (owner == k_overflow && root_has_no_number());
    }

    /// Checks the object at m_here, whose path is m_where.
    Result<void> check(const struct stat& facts, Role role) const
    {
        const bool own = is_trusted(facts.st_uid);
        const bool sticky = role == Role::way && (facts.st_mode & S_ISVTX) != 0;
        const bool written =
            role != Role::link && !sticky && (facts.st_mode & k_group_and_others_write) != 0;
        if ((own && !written) || is_on_afs(m_here.get())) {
            return {};
        }
        const std::string what = m_where.empty() ? "/" : m_where;
        const std::string on_the_way =
            what == m_path ? "" : fmt::format(" on the way to {}", m_path);
        if (!own) {
            return fail(Error::Kind::denied,
                        fmt::format("{}{} belongs to user {}, who could change the file: use a "
                                    "path that belongs to you or root throughout",
                                    what, on_the_way, user_name(facts.st_uid)));
        }
        return fail(Error::Kind::denied,
                    fmt::format("others may write to {}{} (mode {:04o}): chmod go-w {}", what,
                                on_the_way, facts.st_mode & 07777U, what));
    }

    Result<void> check_entry(Role role)
    {
        struct stat facts {};
        if (!m_here || ::fstat(m_here.get(), &facts) != 0) {
            return problem();
        }
        return check(facts, role);
    }

    Result<void> to_root()
    {
        m_where.clear();
        m_here.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
        return check_entry(Role::way);
    }

    Result<void> step(const std::string& name, int flags)
    {
        m_at_goal = flags != O_PATH && name != "..";
        if (name == "..") { // already checked on the way down
            m_here.reset(::openat(m_here.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
            m_where.resize(m_where.empty() ? 0 : m_where.rfind('/'));
            return m_here ? Result<void>() : problem();
        }
        Descriptor next(::openat(m_here.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
        if (!next && flags != O_PATH && (errno == ELOOP || errno == ENOTDIR)) {
            next.reset(::openat(m_here.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
            m_at_goal = false;
        }
        const std::string parent = m_where;
        Descriptor from = std::exchange(m_here, std::move(next));
        m_where += "/" + name;
        struct stat facts {};
        if (!m_here || ::fstat(m_here.get(), &facts) != 0) {
            return problem();
        }
        if (S_ISLNK(facts.st_mode)) {
            TRY(check(facts, Role::link));
            return follow(std::move(from), parent);
        }
        if (flags != O_PATH && !m_at_goal) { // not a directory
            errno = ENOTDIR;
            return problem();
        }
        return check(facts, m_at_goal ? m_goal : Role::way);
    }

    Result<void> follow(Descriptor from, const std::string& parent)
    {
        std::array<char, PATH_MAX> target{};
        const ssize_t size = ::readlinkat(m_here.get(), "", target.data(), target.size());
        if (size <= 0 || ++m_links > k_most_links) {
            errno = size < 0 ? errno : ELOOP;
            return problem();
        }
        const std::string_view text(target.data(), static_cast<std::size_t>(size));
        put_before(m_names, text);
        if (text.starts_with('/')) {
            return to_root();
        }
        m_here = std::move(from);
        m_where = parent;
        return {};
    }

    const std::string& m_path;
    std::optional<unsigned> m_also;
    Role m_goal;
    std::deque<std::string> m_names; ///< remaining components
    Descriptor m_here;
    std::string m_where; ///< path of m_here without symbolic links; empty for /
    bool m_at_goal = false;
    int m_links = 0;
};

} // namespace

bool is_of_another_user(const struct stat& facts, int fd)
{
    return facts.st_uid != 0 && facts.st_uid != ::geteuid() && facts.st_uid != k_overflow &&
           !is_on_afs(fd);
}

Result<Descriptor> open_trusted_file(const std::string& path, std::optional<unsigned> also)
{
    if (::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return fail(Error::Kind::missing, fmt::format("{}: {}", path, std::strerror(errno)));
    }
    // Do not block on a FIFO without a writer.
    TRY_ASSIGN(Descriptor file, Walk(path, also).open(O_RDONLY | O_NONBLOCK | O_NOCTTY));
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return fail(Error::Kind::usage, fmt::format("{} is not a file", path));
    }
    return file;
}

Result<Descriptor> open_trusted_directory(const std::string& path)
{
    return Walk(path).open(O_RDONLY | O_DIRECTORY);
}

Result<Descriptor> open_trusted_parent(const std::string& path)
{
    const std::string parent = path.substr(0, path.rfind('/') + 1);
    return Walk(parent, std::nullopt, Role::way).open(O_RDONLY | O_DIRECTORY);
}

} // namespace gpuq
