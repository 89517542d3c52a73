// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"

#include <functional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// Removes the directory `name` of `parent` with all that is in it, following no link and crossing
/// no mount (posix/tree.h).
using RemoveTree = std::function<bool(int parent, const std::string& name)>;

/// A directory for the temporary files of one link on one node, TMPDIR of its program. Only its
/// user may enter it, and other users can't take its name first: mkdtemp makes it. A lock tells
/// that it is in use, until the last process that has this object is gone, however that ended.
class LinkTmp {
public:
    /// Below what the node has set as TMPDIR for its jobs (TaskProlog, job_container), else /tmp.
    /// `io`: there is no place for it.
    static Result<LinkTmp> make();

    const std::string& path() const { return m_path; }

    /// Removes it, and those of this user on this host that nothing uses any more: their processes
    /// were killed before they could. May take long; what can't be removed stays for the next.
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

/// Whether a value of TMPDIR is such a directory of a link.
bool is_link_tmp(std::string_view path);

} // namespace gpuq::supervisor
