// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/leftovers.h"

#include "io/private_dir.h"
#include "posix/tree.h"

#include <dirent.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace gpuq {

void sweep_leftovers()
{
    const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir("/tmp"), ::closedir);
    const uid_t user = ::geteuid();
    std::vector<std::string> own;
    while (const dirent* entry = list ? ::readdir(list.get()) : nullptr) {
        if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
            is_private_dir_name(entry->d_name, user)) {
            own.emplace_back(entry->d_name);
        }
    }
    for (const std::string& name : own) {
        // A process that creates a directory locks it before use, and creates it again if it was
        // removed in between.
        if (const Descriptor lock = lock_leftover(::dirfd(list.get()), name.c_str())) {
            (void)remove_tree_at(::dirfd(list.get()), name);
        }
    }
}

} // namespace gpuq
