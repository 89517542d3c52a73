// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/unnamed_file.h"

#include "posix/random.h"
#include "posix/store_paths.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpuq {

std::string temporary_name()
{
    std::string name(k_temporary);
    for (const unsigned char byte : random_bytes()) {
        name += fmt::format("{:02x}", byte);
    }
    return name;
}

Temporary::Temporary(int directory, std::string_view content)
    : m_directory(directory)
    , m_name(temporary_name())
    , m_file(::openat(directory, m_name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600))
{
    if (!m_file) {
        m_name.clear();
        m_error = errno;
    } else if (!write_all(m_file.get(), content)) {
        m_error = errno;
    }
}

Temporary::~Temporary()
{
    if (!m_name.empty()) {
        ::unlinkat(m_directory, m_name.c_str(), 0);
    }
}

bool Temporary::sync()
{
    return ::fsync(m_file.get()) == 0;
}

bool Temporary::flush()
{
    const int same = ::fcntl(m_file.get(), F_DUPFD_CLOEXEC, 0);
    return same >= 0 && ::close(same) == 0;
}

bool Temporary::replace(const std::string& name)
{
    if (::renameat(m_directory, m_name.c_str(), m_directory, name.c_str()) != 0) {
        return false;
    }
    m_name.clear();
    return true;
}

bool Temporary::claim(const std::string& name)
{
    if (::linkat(m_directory, m_name.c_str(), m_directory, name.c_str(), 0) == 0) {
        return true;
    }
    const int error = errno;
    if (error == EEXIST && has_two_names()) {
        return true; // NFS server repeated the request: the first one succeeded.
    }
    if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS) {
        return claim_by_rename(name); // The file system has no hard links.
    }
    errno = error;
    return false;
}

bool Temporary::has_two_names() const
{
    struct stat status = {};
    return ::fstat(m_file.get(), &status) == 0 && status.st_nlink == 2;
}

bool Temporary::claim_by_rename(const std::string& name)
{
    if (::renameat2(m_directory, m_name.c_str(), m_directory, name.c_str(), RENAME_NOREPLACE) !=
        0) {
        return false;
    }
    m_name.clear();
    return true;
}

UnnamedFile::UnnamedFile(const std::string& root, const std::string& path, std::string_view content)
    : m_root(root)
    , m_path(path)
    , m_empty(content.empty())
{
    Descriptor directory =
        open_directory(root, split_last(path).first, Missing::is_made, &m_changed);
    if (!directory) {
        m_error = errno;
        return;
    }
    m_file.emplace(directory.get(), content);
    m_error = m_file->error();
    m_changed.push_back(std::move(directory)); // must outlive the temporary name
}

Result<void> UnnamedFile::written() const
{
    return m_error == 0 ? Result<void>() : fault(m_error);
}

Result<void> UnnamedFile::sync()
{
    return m_empty || m_file->sync() ? Result<void>() : fault(errno);
}

Result<void> UnnamedFile::flush()
{
    return m_file->flush() ? Result<void>() : fault(errno);
}

Result<void> UnnamedFile::name(Naming naming)
{
    const std::string name(split_last(m_path).second);
    if (naming == Naming::replaces ? m_file->replace(name) : m_file->claim(name)) {
        return {};
    }
    if (naming == Naming::claims && errno == EEXIST) {
        return fail(Error::Kind::busy, fmt::format("{}/{} already exists", m_root, m_path));
    }
    return fault(errno);
}

Result<void> UnnamedFile::sync_directories() const
{
    for (const Descriptor& directory : m_changed) {
        if (::fsync(directory.get()) != 0) {
            return fault(errno);
        }
    }
    return {};
}

Error UnnamedFile::fault(int error) const
{
    return trouble("write", m_root, m_path, error);
}

} // namespace gpuq
