// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <string>
#include <string_view>

namespace gpuq::cli {

/// A file that a verb is to write where somebody wants it, and its folder, which has been looked
/// at: what takes long to make need not be made in vain.
///
/// A symbolic link on the way is followed only in a folder that none but root and the caller may
/// write: in /tmp it may be somebody else's, to have us write where they can not.
class OutputFile {
public:
    /// `missing` without the folder; `denied` when the caller may not write there, or for a link
    /// as above; `usage` for what is there and is no file; `io` for the rest.
    static Result<OutputFile> at(const std::string& path);

    /// Old or new content, whatever happens. A new file, with the permissions that the umask
    /// leaves.
    Result<void> write(std::string_view content) const;

    /// The file itself, to read and to append to; made when it is not there. Whoever holds it holds
    /// it alone: `busy` while another process does.
    struct Appended {
        Descriptor file;
        bool made = false; ///< it was not there before
    };
    Result<Appended> append() const;
    /// It is not there any more, or never was.
    void remove() const;

private:
    OutputFile(std::string path, Descriptor folder, std::string name)
        : m_path(std::move(path))
        , m_folder(std::move(folder))
        , m_name(std::move(name))
    {
    }

    std::string m_path; ///< as it was given
    Descriptor m_folder;
    std::string m_name; ///< in the folder
};

} // namespace gpuq::cli
