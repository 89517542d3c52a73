// SPDX-License-Identifier: GPL-2.0-or-later
#include "log/file_sink.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpuq::log {

namespace {

/// Gives the file the first free name PATH.1, PATH.2 ..; never replaces another one. False if that
/// failed.
bool keep(const std::string& path)
{
    constexpr int k_most_files = 1'000'000;
    for (int number = 1; number <= k_most_files; ++number) {
        if (::link(path.c_str(), (path + "." + std::to_string(number)).c_str()) == 0) {
            return ::unlink(path.c_str()) == 0;
        }
        if (errno != EEXIST) {
            return false;
        }
    }
    return false;
}

} // namespace

FileSink::FileSink(std::string path, std::size_t most, Full full)
    : m_path(std::move(path))
    , m_most(most)
    , m_full(full)
{
}

bool FileSink::open()
{
    constexpr mode_t k_private = 0600;
    m_file.reset(::open(m_path.c_str(),
                        O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                        k_private));
    struct stat facts {};
    if (m_file && (::fstat(m_file.get(), &facts) != 0 || !S_ISREG(facts.st_mode))) {
        m_file.reset();
    }
    return static_cast<bool>(m_file);
}

/// True after another process has rotated the file.
bool FileSink::is_replaced() const
{
    struct stat ours {};
    struct stat named {};
    return ::fstat(m_file.get(), &ours) != 0 || ::lstat(m_path.c_str(), &named) != 0 ||
           ours.st_ino != named.st_ino || ours.st_dev != named.st_dev;
}

/// Only the process that holds the lock of the file that still has the name renames it. If the lock
/// is not available at once, another process is about to do so.
void FileSink::rotate()
{
    if (::flock(m_file.get(), LOCK_EX | LOCK_NB) == 0 && !is_replaced()) {
        if (m_full == Full::is_kept) {
            keep(m_path); // if it fails, the file grows
        } else {
            std::rename(m_path.c_str(), (m_path + ".1").c_str());
        }
    }
    open();
}

bool FileSink::write(std::string_view line)
{
    if ((!m_file || is_replaced()) && !open()) {
        return false;
    }
    struct stat facts {};
    if (::fstat(m_file.get(), &facts) == 0 &&
        static_cast<std::size_t>(facts.st_size) + line.size() > m_most) {
        rotate();
    }
    return m_file &&
           ::write(m_file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

} // namespace gpuq::log
