// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Files that get their names in the state directory only when they are complete, so that readers
/// and a crash never see a part of one.
namespace gpuq {

/// Prefix of the names of files that have no name yet.
constexpr std::string_view k_temporary = ".tmp-";
/// A name with this prefix that no other file has.
std::string temporary_name();

/// A file with a temporary name in `directory`, which the destructor unlinks. After a failure errno
/// is set.
class Temporary {
public:
    Temporary(int directory, std::string_view content);
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    ~Temporary();

    /// 0, or the errno value of a failed write.
    int error() const { return m_error; }
    bool sync();
    /// On NFS, closing a descriptor sends the data to the server; on other file systems this has no
    /// effect.
    bool flush();
    bool replace(const std::string& name);
    /// Links the file under its final name; fails with EEXIST if that exists.
    bool claim(const std::string& name);

private:
    bool has_two_names() const;
    bool claim_by_rename(const std::string& name);

    int m_directory;
    std::string m_name;
    Descriptor m_file;
    int m_error = 0;
};

enum class Naming { replaces, claims };

/// A file that has its contents but not its final name, and the directories created for it.
class UnnamedFile {
public:
    /// `path` must be safe (store_paths.h); it and `root` must outlive the object.
    UnnamedFile(const std::string& root, const std::string& path, std::string_view content);

    /// Whether the contents were written.
    Result<void> written() const;
    /// An empty file has no data to sync.
    Result<void> sync();
    /// See Temporary.
    Result<void> flush();
    /// `busy` if the name is claimed and exists.
    Result<void> name(Naming naming);
    Result<void> sync_directories() const;

private:
    Error fault(int error) const;

    const std::string& m_root;
    const std::string& m_path;
    bool m_empty;
    std::vector<Descriptor> m_changed;
    std::optional<Temporary> m_file;
    int m_error = 0;
};

} // namespace gpuq
