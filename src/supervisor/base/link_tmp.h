// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <functional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// Removes the directory `name` of `parent` with all its contents, without following links or
/// crossing mounts (posix/tree.h).
using RemoveTree = std::function<bool(int parent, const std::string& name)>;

/// A directory for the temporary files of one link on one node: the TMPDIR of its program. Only its
/// user may enter it, and other users cannot take its name first, because mkdtemp creates it. A
/// lock shows that it is in use until the last process with this object is gone, however it ended.
class LinkTmp {
public:
    /// Creates it in the directory that the node has set as TMPDIR for its jobs (TaskProlog,
    /// job_container), unless other users could replace it there, otherwise in /tmp. `io` if that
    /// fails.
    static Result<LinkTmp> make();

    const std::string& path() const { return m_path; }

    /// Removes it, and also this user's unused ones on this host, whose processes were killed
    /// before they could remove them. May take long; anything that cannot be removed is left for
    /// the next call.
    void remove(const RemoveTree& remove_tree) const;

private:
    LinkTmp(std::string path, Descriptor lock)
        : m_path(std::move(path))
        , m_lock(std::move(lock))
    {
    }

    std::string m_path;
    Descriptor m_lock;
};

/// True if a value of TMPDIR is such a directory.
bool is_link_tmp(std::string_view path);

} // namespace gpuq::supervisor
