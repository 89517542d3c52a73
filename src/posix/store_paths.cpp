// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/store_paths.h"

#include "log/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gpuq {
namespace {

/// Removes and returns the first component of a path.
std::string next_word(std::string_view& path)
{
    const std::size_t end = std::min(path.find('/'), path.size());
    std::string word(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    return word;
}

} // namespace

bool is_safe(std::string_view path)
{
    while (!path.empty()) {
        const std::string word = next_word(path);
        if (word.empty() || word == "." || word == "..") {
            return false;
        }
    }
    return true;
}

std::pair<std::string_view, std::string_view> split_last(std::string_view path)
{
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) {
        return {"", path};
    }
    return {path.substr(0, slash), path.substr(slash + 1)};
}

Descriptor open_directory(const std::string& root, std::string_view path, Missing missing,
                          std::vector<Descriptor>* changed)
{
    Descriptor directory(::open(root.c_str(), k_directory_flags));
    while (directory && !path.empty()) {
        const std::string word = next_word(path);
        Descriptor next(::openat(directory.get(), word.c_str(), k_directory_flags | O_NOFOLLOW));
        if (!next && errno == ENOENT && missing != Missing::is_error) {
            if (::mkdirat(directory.get(), word.c_str(), 0700) != 0 && errno != EEXIST) {
                return Descriptor();
            }
            next =
                Descriptor(::openat(directory.get(), word.c_str(), k_directory_flags | O_NOFOLLOW));
            if (changed != nullptr) {
                changed->push_back(std::move(directory));
            }
        }
        directory = std::move(next);
    }
    return directory;
}

Descriptor open_file(const std::string& root, std::string_view path, struct stat& status)
{
    const auto [parent, name] = split_last(path);
    const Descriptor directory = open_directory(root, parent, Missing::is_error);
    if (!directory) {
        return Descriptor();
    }
    // O_NONBLOCK: do not hang on a FIFO.
    Descriptor file(::openat(directory.get(), std::string(name).c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file || ::fstat(file.get(), &status) != 0) {
        return Descriptor();
    }
    if (!S_ISREG(status.st_mode)) {
        errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
        return Descriptor();
    }
    return file;
}

Error trouble(std::string_view verb, std::string_view root, std::string_view path, int error)
{
    Error failure =
        fail(Error::Kind::io, fmt::format("can't {} {}{}{}: {}", verb, root,
                                          path.empty() ? "" : "/", path, std::strerror(error)));
    log::write(error == ENOENT ? log::Level::trace : log::Level::debug, log::Part::command, "{}",
               failure.text);
    return failure;
}

} // namespace gpuq
