// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/files.h"

#include "io/descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <tuple>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq {
namespace {

constexpr int k_deepest = 6;
constexpr std::size_t k_most_names = 20'000;
constexpr std::size_t k_most_directories = 1000;
constexpr std::size_t k_most_files = 64;

struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

Error failure(const std::string& path)
{
    const auto kind = errno == ENOENT || errno == ENOTDIR ? Error::Kind::missing : Error::Kind::io;
    return fail(kind, fmt::format("{}: {}", path, std::strerror(errno)));
}

/// The named directory itself may be a symbolic link; directories below it may not.
Descriptor open_named(const std::string& directory)
{
    return Descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Descriptor open_below(int parent, const std::string& name)
{
    return Descriptor(
        ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Opens each directory of the path relative to its parent.
Descriptor open_path(Descriptor directory, const std::string& path, int flags)
{
    std::size_t begin = 0;
    while (directory) {
        const std::size_t end = path.find('/', begin);
        const std::string name = path.substr(begin, end - begin);
        if (name.empty() || name == "..") {
            errno = ENOENT;
            return {};
        }
        if (end == path.npos) {
            return Descriptor(::openat(directory.get(), name.c_str(), flags));
        }
        directory = open_below(directory.get(), name);
        begin = end + 1;
    }
    return {};
}

/// Directories that never contain training output but many other files.
bool is_passed_by(std::string_view name)
{
    return name.starts_with('.') || name == "__pycache__" || name == "node_modules" ||
           name == "site-packages";
}

/// Breadth-first search of a directory tree.
class Search {
public:
    Search(Time since, const std::function<bool(std::string_view)>& wanted)
        : m_since(since)
        , m_wanted(wanted)
    {
    }

    std::vector<Files::File> files;

    void through(Descriptor top)
    {
        m_top = std::move(top);
        m_waiting.push_back({"", 0});
        for (std::size_t directories = 0; !m_waiting.empty() && directories < k_most_directories;
             ++directories) {
            const Waiting next = m_waiting.front();
            m_waiting.pop_front();
            list(next);
        }
    }

private:
    struct Waiting {
        std::string path;
        int depth;
    };

    void list(const Waiting& directory)
    {
        Descriptor here = directory.path.empty()
                              ? open_below(m_top.get(), ".")
                              : open_path(open_below(m_top.get(), "."), directory.path,
                                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        const std::unique_ptr<DIR, CloseDirectory> entries(here ? ::fdopendir(here.get())
                                                                : nullptr);
        if (!entries) {
            return;
        }
        const int parent = here.release(); // closedir() closes it
        while (const dirent* entry = ::readdir(entries.get())) {
            if (++m_names > k_most_names) {
                m_waiting.clear();
                return;
            }
            take(parent, entry->d_name, entry->d_type, directory);
        }
    }

    void take(int parent, const char* name, unsigned char type, const Waiting& directory)
    {
        const bool is_wanted = m_wanted(name);
        const bool may_be_directory = (type == DT_DIR || type == DT_UNKNOWN) &&
                                      directory.depth < k_deepest && !is_passed_by(name);
        const bool may_be_file = is_wanted && (type == DT_REG || type == DT_UNKNOWN);
        if (!may_be_file && !may_be_directory) {
            return;
        }
        const std::string path = directory.path.empty() ? name : directory.path + '/' + name;
        if (type == DT_DIR) { // avoids stat(), which costs a round trip on NFS
            m_waiting.push_back({path, directory.depth + 1});
            return;
        }
        struct stat facts = {};
        if (::fstatat(parent, name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            return;
        }
        if (S_ISDIR(facts.st_mode) && may_be_directory) {
            m_waiting.push_back({path, directory.depth + 1});
        } else if (S_ISREG(facts.st_mode) && is_wanted && facts.st_uid == ::geteuid()) {
            add(path, facts);
        }
    }

    void add(const std::string& path, const struct stat& facts)
    {
        const Time modified = Time(std::chrono::seconds(facts.st_mtim.tv_sec) +
                                   std::chrono::microseconds(facts.st_mtim.tv_nsec / 1000));
        if (modified >= m_since) {
            files.push_back({path, static_cast<std::uint64_t>(facts.st_size), modified});
        }
    }

    Time m_since;
    const std::function<bool(std::string_view)>& m_wanted;
    Descriptor m_top;
    std::deque<Waiting> m_waiting;
    std::size_t m_names = 0;
};

/// Opens a regular file of the calling user and returns its attributes.
Result<Descriptor> open_file(const std::string& directory, const std::string& path,
                             struct stat& facts)
{
    // O_NONBLOCK: do not wait for the other end of a FIFO.
    Descriptor file =
        open_path(open_named(directory), path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (!file && errno == ELOOP) {
        return fail(Error::Kind::io,
                    fmt::format("{}: a symbolic link, which is not followed", path));
    }
    if (!file || ::fstat(file.get(), &facts) != 0) {
        return failure(path);
    }
    if (!S_ISREG(facts.st_mode)) {
        return fail(Error::Kind::io, fmt::format("{}: not a regular file", path));
    }
    if (facts.st_uid != ::geteuid()) {
        return fail(Error::Kind::io,
                    fmt::format("{}: it belongs to user id {}, not to you", path, facts.st_uid));
    }
    return file;
}

} // namespace

Result<std::vector<Files::File>>
PosixFiles::changed_since(const std::string& directory, Time since,
                          const std::function<bool(std::string_view name)>& wanted)
{
    Descriptor top = open_named(directory);
    if (!top) {
        return failure(directory);
    }
    Search search(since, wanted);
    search.through(std::move(top));
    std::ranges::sort(search.files, [](const File& left, const File& right) {
        return std::tie(right.modified, left.path) < std::tie(left.modified, right.path);
    });
    search.files.resize(std::min(search.files.size(), k_most_files));
    return std::move(search.files);
}

Result<std::uint64_t> PosixFiles::size(const std::string& directory, const std::string& path)
{
    struct stat facts = {};
    TRY_ASSIGN([[maybe_unused]] const Descriptor file, open_file(directory, path, facts));
    return static_cast<std::uint64_t>(facts.st_size);
}

Result<std::string> PosixFiles::read_at(const std::string& directory, const std::string& path,
                                        std::uint64_t offset, std::size_t size)
{
    struct stat facts = {};
    TRY_ASSIGN(const Descriptor file, open_file(directory, path, facts));
    std::string bytes(size, '\0');
    std::size_t got = 0;
    while (got < size) {
        const ssize_t some =
            ::pread(file.get(), bytes.data() + got, size - got, static_cast<off_t>(offset + got));
        if (some < 0 && errno == EINTR) {
            continue;
        }
        if (some < 0) {
            return failure(path);
        }
        if (some == 0) {
            break;
        }
        got += static_cast<std::size_t>(some);
    }
    bytes.resize(got);
    return bytes;
}

} // namespace gpuq
