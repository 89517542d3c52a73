// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"

#include <memory>
#include <string>

namespace gpuq {

/// The state folder as files of this machine, local or on NFS.
///
/// Each call opens the root and every folder on the way anew: on NFS this, and only this, makes
/// the kernel ask the server whether a folder has changed, so that a file made by another host a
/// moment ago is seen. A name is temporary when it begins with `.tmp-`; `list` leaves such out.
/// May be used by several threads.
class PosixStore : public Store {
public:
    /// Opens `root`, an absolute path, and makes it with its parents when it is not there.
    /// `denied` when it belongs to another user or others may write to it; `io` when it can't
    /// be made or opened. Symbolic links on the way to the root are followed, those below are not.
    static Result<std::unique_ptr<PosixStore>> open(const std::string& root);

    const std::string& root() const override { return m_root; }
    Result<std::string> read(const std::string& path) override;
    Result<std::string> read_at(const std::string& path, std::uint64_t offset,
                                std::size_t size) override;
    Result<std::uint64_t> size(const std::string& path) override;
    Result<void> write(const std::string& path, std::string_view content) override;
    Result<void> write_once(const std::string& path, std::string_view content) override;
    Result<void> write_together(const std::vector<NewFile>& files) override;
    Result<void> make_dir(const std::string& path) override;
    Result<std::vector<std::string>> list(const std::string& path) override;
    Result<void> remove(const std::string& path) override;
    Result<std::uint64_t> tree_size(const std::string& path) override;
    Result<void> remove_tree(const std::string& path) override;

private:
    explicit PosixStore(std::string root)
        : m_root(std::move(root))
    {
    }
    std::string m_root;
};

} // namespace gpuq
