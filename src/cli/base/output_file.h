// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <string>
#include <string_view>

namespace gpuq::cli {

/// A file to be written at a path given by the user. `at` opens and checks its directory, so that
/// errors are found before the content is computed.
///
/// A symbolic link in the path is followed only in a directory that only root and the caller may
/// write to: in /tmp another user could make this process write to a file that they can't write to.
class OutputFile {
public:
    /// `missing` if the directory does not exist; `denied` if the caller may not write to it, or
    /// for a link as above; `usage` if the path is not that of a regular file; `io` for other
    /// errors.
    static Result<OutputFile> at(const std::string& path);

    /// Who may read the new file: those whom the umask leaves, or all users.
    enum class Readers { by_umask, all };
    /// Replaces the file atomically: it has the old or the new content at any time.
    Result<void> write(std::string_view content, Readers readers = Readers::by_umask) const;

    /// The file opened for reading and appending; created if it does not exist. Locked exclusively:
    /// `busy` while another process holds it.
    struct Appended {
        Descriptor file;
        bool made = false; ///< it did not exist before
    };
    Result<Appended> append() const;
    /// Whether a process has read the file since it was written, according to its access time,
    /// which file systems set at the first read (`relatime`). True if it does not exist or that is
    /// not known (`noatime`).
    bool was_read() const;
    /// Removes the file if it exists.
    void remove() const;

private:
    OutputFile(std::string path, Descriptor directory, std::string name)
        : m_path(std::move(path))
        , m_directory(std::move(directory))
        , m_name(std::move(name))
    {
    }

    std::string m_path; ///< as given
    Descriptor m_directory;
    std::string m_name; ///< in m_directory
};

} // namespace gpuq::cli
