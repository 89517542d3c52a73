// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// What this machine says of a folder and the file system below it.
struct FolderFacts {
    bool exists = false; ///< else all but the path's owner and mode is told of the nearest parent
    std::uint32_t owner = 0;
    std::uint32_t mode = 0;  ///< permission bits
    bool writable = false;   ///< for the calling user, as far as permissions and mount tell
    std::string file_system; ///< `nfs`, `lustre`, `ext4`; `0x1234` when the number has no name
    enum class Reach {
        network, ///< other machines can have it too
        local,   ///< of this machine
        memory,  ///< of this machine, until it restarts
        unknown
    } reach = Reach::unknown;
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0; ///< for the calling user
    std::optional<std::uint64_t> free_files;
    /// The calling user's quota, where the kernel knows it: that of a network file system it does
    /// not.
    struct Quota {
        std::uint64_t used_bytes = 0;
        std::uint64_t limit_bytes = 0;
    };
    std::optional<Quota> quota;
};

/// The machine that gpuq runs on.
class Host {
public:
    virtual ~Host() = default;

    /// May hang as long as the file system does: ask from `apart`.
    virtual Result<FolderFacts> folder(const std::string& path) = 0;

    /// Where PATH has the program; nothing when it has none.
    virtual std::optional<std::string> program(const std::string& name) = 0;

    struct Answer {
        enum class Kind {
            done, ///< text: what the work returned
            died, ///< text: what it had to say on stderr
            late, ///< no text
        } kind = Kind::done;
        std::string text;
    };
    /// Does each piece of work in a process of its own, all of them side by side, and returns
    /// when all are done or `limit` has passed; then those still at work are killed, and not
    /// waited for: a process that hangs in a file system does not die. Their answers, in order.
    virtual std::vector<Answer> apart(const std::vector<std::function<std::string()>>& work,
                                      std::chrono::milliseconds limit) = 0;
};

} // namespace gpuq
