// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"

#include <memory>
#include <string>
#include <string_view>

namespace gpuq {

/// The state directory in the file system of this machine, local or on NFS.
///
/// Each call opens the root and every directory on the path anew: on NFS, only this makes the
/// kernel ask the server whether a directory has changed, so that a file just created by another
/// host is visible. Names that begin with `.tmp-` are temporary and not included by `list`, which
/// removes those that have been unchanged for a day: their writer has died.
/// Thread-safe.
class PosixStore : public Store {
public:
    enum class Access {
        full,
        read_only, ///< changes nothing but the cache of Slurm's answers: `denied`
    };

    /// Opens `root`, an absolute path, creating it and its parents if necessary. `denied` when it
    /// belongs to another user or others may write to it; `io` when it cannot be created or opened.
    /// Symbolic links on the path to the root are followed, those below it are not. With
    /// `read_only`, a root that does not exist is not created, and reads as empty.
    static Result<std::unique_ptr<PosixStore>> open(const std::string& root,
                                                    Access access = Access::full);

    const std::string& root() const override { return m_root; }
    Result<std::string> read(const std::string& path) override;
    Result<std::string> read_at(const std::string& path, std::uint64_t offset,
                                std::size_t size) override;
    Result<std::uint64_t> size(const std::string& path) override;
    Result<void> write(const std::string& path, std::string_view content) override;
    Result<void> write_once(const std::string& path, std::string_view content) override;
    Result<void> write_together(const std::vector<NewFile>& files) override;
    Result<void> append_line(const std::string& path, std::string_view line) override;
    Result<void> make_dir(const std::string& path) override;
    Result<std::vector<std::string>> list(const std::string& path) override;
    Result<void> remove(const std::string& path) override;
    Result<Descriptor> try_lock(const std::string& path, std::uint32_t byte) override;
    Result<std::uint64_t> tree_size(const std::string& path) override;
    Result<void> remove_tree(const std::string& path) override;

protected:
    explicit PosixStore(std::string root, Access access = Access::full)
        : m_root(std::move(root))
        , m_access(access)
    {
    }

private:
    Result<void> check_change(std::string_view path) const;

    std::string m_root;
    Access m_access;
};

} // namespace gpuq
