// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/candidates.h"

#include "checkpoint/names.h"
#include "io/trusted_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace gpuq::checkpoint {
namespace {

constexpr std::size_t k_most_components = 32;
constexpr int k_most_directories = 10'000;
/// Number of candidates to collect before all but the newest are dropped.
constexpr std::size_t k_many = 4096;

struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

std::vector<std::string> components_of(std::string_view pattern)
{
    std::vector<std::string> components;
    while (!pattern.empty()) {
        const std::size_t slash = std::min(pattern.find('/'), pattern.size());
        const std::string_view component = pattern.substr(0, slash);
        if (!component.empty() && component != ".") {
            components.emplace_back(component);
        }
        pattern.remove_prefix(std::min(slash + 1, pattern.size()));
    }
    return components;
}

bool is_spelled(std::string_view component)
{
    return component.find_first_of("*?") == std::string_view::npos;
}

bool is_newer(const Candidate& left, const Candidate& right)
{
    return left.modified != right.modified ? left.modified > right.modified
                                           : left.path < right.path;
}

/// The name of a link's target if it is in the same directory as the link.
std::string target_beside(const std::string& link)
{
    std::array<char, 256> target{};
    const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
    const std::string_view name(target.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    const bool is_name = !name.empty() && name.size() < target.size() && name != "." &&
                         name != ".." && name.find('/') == std::string_view::npos;
    return is_name ? std::string(name) : "";
}

class Search {
public:
    Search(std::vector<std::string> components, std::size_t most)
        : m_components(std::move(components))
        , m_most(most)
    {
    }

    /// Continues with the components from `at` on in `directory`; `matched` is the part matched by
    /// wildcards so far.
    Result<void> continue_walk(const std::string& directory, const std::string& matched,
                               std::size_t at)
    {
        const std::string& component = m_components[at];
        if (!is_spelled(component)) {
            return go_through(directory, matched, at);
        }
        if (at + 1 < m_components.size()) {
            return continue_walk(directory + '/' + component, joined(matched, component), at + 1);
        }
        struct stat status = {};
        const std::string path = directory + '/' + component;
        if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
            const std::string target = target_beside(path);
            take(directory, joined(matched, target), target);
        } else {
            take(directory, joined(matched, component), component);
        }
        return {};
    }

    std::vector<Candidate> newest()
    {
        std::sort(m_found.begin(), m_found.end(), is_newer);
        m_found.resize(std::min(m_found.size(), m_most));
        return std::move(m_found);
    }

private:
    static std::string joined(const std::string& matched, const std::string& name)
    {
        return matched.empty() ? matched : matched + '/' + name;
    }

    Result<void> go_through(const std::string& directory, const std::string& matched,
                            std::size_t at)
    {
        TRY_ASSIGN(const std::vector<std::string> names, names_in(directory, m_components[at]));
        for (const std::string& name : names) {
            const std::string all = matched.empty() ? name : matched + '/' + name;
            if (at + 1 == m_components.size()) {
                take(directory, all, name);
                continue;
            }
            struct stat status = {};
            const std::string path = directory + '/' + name;
            if (::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
                TRY(continue_walk(path, all, at + 1));
            }
        }
        return {};
    }

    Result<std::vector<std::string>> names_in(const std::string& directory,
                                              std::string_view pattern)
    {
        if (++m_directories > k_most_directories) {
            return fail(Error::Kind::usage,
                        fmt::format("the checkpoint pattern matches more than {} directories; use "
                                    "a more specific pattern",
                                    k_most_directories));
        }
        const std::unique_ptr<DIR, CloseDirectory> entries(::opendir(directory.c_str()));
        std::vector<std::string> names;
        if (!entries && (errno == ENOENT || errno == ENOTDIR)) {
            return names; // removed since it was listed
        }
        errno = entries ? 0 : errno;
        while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
            if (matches(pattern, entry->d_name) && !is_temporary(entry->d_name) &&
                std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..") {
                names.emplace_back(entry->d_name);
            }
        }
        if (errno != 0) {
            return fail(Error::Kind::io, fmt::format("can't look for checkpoints in {}: {}",
                                                     directory, std::strerror(errno)));
        }
        return names;
    }

    void take(const std::string& directory, const std::string& matched, const std::string& name)
    {
        struct stat status = {};
        const std::string path = directory + '/' + name;
        if (name.empty() || ::lstat(path.c_str(), &status) != 0) {
            return;
        }
        const Kind kind = kind_of(status);
        const bool is_other = status.st_uid != ::geteuid() &&
                              is_of_another_user(status, open_directory(AT_FDCWD, directory).get());
        if (is_other || (kind != Kind::file && kind != Kind::directory)) {
            return;
        }
        m_found.push_back({path, matched.empty() ? name : matched, kind, modified_of(status)});
        if (m_found.size() >= std::max(k_many, 2 * m_most)) {
            std::nth_element(m_found.begin(), m_found.begin() + static_cast<std::ptrdiff_t>(m_most),
                             m_found.end(), is_newer);
            m_found.resize(m_most);
        }
    }

    std::vector<std::string> m_components;
    std::size_t m_most;
    int m_directories = 0;
    std::vector<Candidate> m_found;
};

/// Reports errors of the directory itself early and clearly. False if it does not exist.
Result<bool> exists(const std::string& directory)
{
    const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened || errno == ENOENT) {
        return static_cast<bool>(opened);
    }
    return fail(Error::Kind::io, fmt::format("can't look for checkpoints in {}: {}", directory,
                                             std::strerror(errno)));
}

std::string without_slashes_at_end(std::string directory)
{
    directory.resize(directory.find_last_not_of('/') + 1); // npos + 1 is 0: the root
    return directory;
}

} // namespace

Result<std::vector<Candidate>> candidates_at(const Place& place, std::size_t most)
{
    std::vector<std::string> components = components_of(place.pattern);
    const bool is_absolute = place.pattern.starts_with('/');
    if (components.empty() || components.size() > k_most_components ||
        (!is_absolute && !place.directory.starts_with('/'))) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' in '{}' is not a checkpoint location: give an absolute "
                                "directory and a pattern such as 'epoch-*.pt'",
                                place.pattern, place.directory));
    }
    if (!is_absolute) {
        TRY_ASSIGN(const bool directory_exists, exists(place.directory));
        if (!directory_exists) {
            return std::vector<Candidate>();
        }
    }
    Search search(std::move(components), most);
    TRY(search.continue_walk(is_absolute ? "" : without_slashes_at_end(place.directory), "", 0));
    return search.newest();
}

} // namespace gpuq::checkpoint
