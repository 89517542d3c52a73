// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
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

    /// True when this process holds `name` among the calling user's processes on this machine: it
    /// asks for it here, and keeps it to its end. For work that one of them is to do for all; never
    /// to protect anything.
    virtual bool hold(const std::string& name) = 0;

    /// Connects to a process of the calling user's on this machine, by the first of the names at
    /// which one listens (core/local_socket.h): `missing`, `denied` with the name of another user
    /// who listens there.
    virtual Result<Descriptor> connect_to(const std::vector<std::string>& names) = 0;

    /// Where PATH has the program; nothing when it has none.
    virtual std::optional<std::string> program(const std::string& name) = 0;

    struct Ended {
        int status = 0;    ///< 128+N for signal N
        std::string words; ///< what it printed: the end of it
    };
    enum class Heard { both, output }; ///< both streams, or standard output alone
    /// Executes a program without input, and waits for its end. `io` when it can't be started.
    virtual Result<Ended> run(const std::vector<std::string>& words, Heard heard) = 0;
    Result<Ended> run(const std::vector<std::string>& words) { return run(words, Heard::both); }
    /// The same on this process's own streams, or with `pager` (may be empty) reading what it
    /// prints: gives the status of what was on the terminal.
    virtual Result<int> run_here(const std::vector<std::string>& words,
                                 const std::vector<std::string>& pager) = 0;

    /// Starts a program that goes on by itself: without streams, in `/`, a session of its own.
    virtual Result<void> leave_running(const std::vector<std::string>& words) = 0;

    struct Answer {
        enum class Kind {
            done, ///< text: what the work returned
            died, ///< text: what it had to say on stderr
            late, ///< no text
        } kind = Kind::done;
        std::string text;
    };
    /// Does each piece of work in a process of its own, all of them side by side, and returns
    /// when all are done or `limit` has passed; then those still at work are killed, with all that
    /// they have started in their sessions, and not waited for: a process that hangs in a file
    /// system does not die. Their answers, in order.
    virtual std::vector<Answer> apart(const std::vector<std::function<std::string()>>& work,
                                      std::chrono::milliseconds limit) = 0;
};

} // namespace gpuq
