// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/tree.h"

#include "io/trusted_path.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace gpuq::checkpoint {
namespace {

/// Each level holds a descriptor open.
constexpr int k_deepest = 32;

struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

/// At most k_most_parts + 1 names, sorted; nothing on failure, with the reason in errno.
std::optional<std::vector<std::string>> names_in(int directory)
{
    Descriptor again = open_directory(directory, ".");
    const std::unique_ptr<DIR, CloseDirectory> entries(again ? ::fdopendir(again.get()) : nullptr);
    if (!entries) {
        return std::nullopt;
    }
    again.release(); // closedir closes it
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(entries.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != ".." && names.size() <= k_most_parts) {
            names.emplace_back(name);
        }
    }
    if (errno != 0) {
        return std::nullopt;
    }
    std::sort(names.begin(), names.end());
    return names;
}

class Walk {
public:
    explicit Walk(const Visit& visit)
        : m_visit(visit)
    {
    }

    Tree tree;

    void go_through(int directory, const std::string& path, int depth)
    {
        const auto names = names_in(directory);
        if (!names) {
            tree.error = errno;
            return;
        }
        for (const std::string& name : *names) {
            if (tree.parts.size() >= k_most_parts) {
                tree.is_all = false;
                return;
            }
            take(directory, name, path.empty() ? name : path + '/' + name, depth);
        }
    }

private:
    void take(int parent, const std::string& name, const std::string& path, int depth)
    {
        struct stat status = {};
        if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            return;
        }
        Part part{path, kind_of(status), 0, modified_of(status)};
        if (part.kind == Kind::file) {
            part.bytes = static_cast<std::uint64_t>(status.st_size);
        }
        tree.is_own = tree.is_own && !is_of_another_user(status, parent);
        m_visit(parent, name, part);
        tree.parts.push_back(part);
        if (part.kind == Kind::directory) {
            go_into(parent, name, path, depth + 1);
        }
    }

    void go_into(int parent, const std::string& name, const std::string& path, int depth)
    {
        if (depth > k_deepest) {
            tree.is_all = false;
            return;
        }
        const Descriptor directory = open_directory(parent, name);
        if (directory) {
            go_through(directory.get(), path, depth);
        } else if (errno != ENOENT) {
            tree.error = errno;
        }
    }

    const Visit& m_visit;
};

} // namespace

Kind kind_of(const struct stat& status)
{
    switch (status.st_mode & S_IFMT) {
    case S_IFREG:
        return Kind::file;
    case S_IFDIR:
        return Kind::directory;
    case S_IFLNK:
        return Kind::link;
    default:
        return Kind::other;
    }
}

Time modified_of(const struct stat& status)
{
    // A file's time can be any number; gpuq's times have years of four digits.
    constexpr std::int64_t k_last = 253'402'300'799;
    const auto seconds = std::clamp<std::int64_t>(status.st_mtim.tv_sec, -k_last, k_last);
    return Time(std::chrono::seconds(seconds) +
                std::chrono::microseconds(status.st_mtim.tv_nsec / 1000));
}

OpenFile open_file(int parent, const std::string& name)
{
    OpenFile opened;
    // Without O_NONBLOCK, a FIFO with this name would block until its other end is opened.
    opened.file.reset(
        ::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!opened.file || ::fstat(opened.file.get(), &opened.status) != 0) {
        opened.error = errno;
        opened.file.reset();
    } else if (!S_ISREG(opened.status.st_mode)) {
        opened.error = ELOOP;
        opened.file.reset();
    }
    return opened;
}

Descriptor open_directory(int parent, const std::string& name)
{
    return Descriptor(
        ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void leave_as_it_is(int, const std::string&, Part&) {}

Tree walk(int directory, const Visit& visit)
{
    Walk walk(visit);
    walk.go_through(directory, "", 0);
    return std::move(walk.tree);
}

void measure(Found& found, const Tree& tree, Time own)
{
    found.bytes = 0;
    found.modified = own;
    for (const Part& part : tree.parts) {
        found.bytes += part.bytes;
        if (part.kind == Kind::file || part.kind == Kind::directory) {
            found.modified = std::max(found.modified, part.modified);
        }
    }
}

} // namespace gpuq::checkpoint
