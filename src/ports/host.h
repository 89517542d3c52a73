// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// Properties of a directory and its file system.
struct DirectoryFacts {
    bool exists = false; ///< if false, all but the owner and mode of the path apply to the nearest
                         ///< existing parent
    std::uint32_t owner = 0;
    std::uint32_t mode = 0;  ///< permission bits
    bool writable = false;   ///< by the calling user, according to permissions and mount options
    std::string file_system; ///< `nfs`, `lustre`, `ext4`; `0x1234` for an unknown file system
    enum class Reach {
        network, ///< may be shared with other machines
        local,   ///< local to this machine
        memory,  ///< local, lost at reboot
        unknown
    } reach = Reach::unknown;
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0; ///< available to the calling user
    std::optional<std::uint64_t> free_files;
    /// The calling user's quota if the kernel knows it; it does not for network file systems.
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

    /// Can block as long as the file system does: call it through `apart`.
    virtual Result<DirectoryFacts> directory(const std::string& path) = 0;

    /// True when this process holds the lock `name` among the calling user's processes on this
    /// machine. Tries to take the lock if necessary, and keeps it until the process ends. Use it to
    /// have one process do work for all, never for protection.
    virtual bool hold(const std::string& name) = 0;

    /// Connects to a process of the calling user on this machine, using the first of the names on
    /// which one listens (io/local_socket.h). `missing`, or `denied` with the name of another
    /// user who listens on one.
    virtual Result<Descriptor> connect_to(const std::vector<std::string>& names) = 0;

    /// Path of a program found in PATH, or `name` itself if it has a slash; nullopt when not found.
    virtual std::optional<std::string> program(const std::string& name) = 0;

    struct Ended {
        int status = 0;     ///< 128+N for signal N
        std::string output; ///< the last part of its output
    };
    enum class Heard { both, output }; ///< both streams, or standard output only
    /// Executes a program without input and waits for it. `io` when it cannot be started.
    virtual Result<Ended> run(const std::vector<std::string>& arguments, Heard heard) = 0;
    Result<Ended> run(const std::vector<std::string>& arguments)
    {
        return run(arguments, Heard::both);
    }
    /// The same with this process's own streams, or with the output piped into `pager` (may be
    /// empty). Returns the exit status of the pager, if any, else that of the program.
    virtual Result<int> run_here(const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& pager) = 0;

    /// Starts a program in the background: no streams, current directory `/`, its own session.
    virtual Result<void> leave_running(const std::vector<std::string>& arguments) = 0;
    /// The same with `variables` (NAME=VALUE) added to the environment. It is killed at the limit,
    /// with its process group. Never waits for it, nor for the disk of its program.
    virtual Result<void> leave_running(const std::vector<std::string>& arguments,
                                       const std::vector<std::string>& variables,
                                       std::chrono::seconds limit) = 0;

    struct Answer {
        enum class Kind {
            done, ///< text: the result of the work
            died, ///< text: its output on stderr
            late, ///< no text
        } kind = Kind::done;
        std::string text;
    };
    /// Runs each piece of work in its own process, in parallel, and returns when all are done or
    /// `limit` has passed. Processes still running then are killed with everything they have
    /// started in their sessions, but not waited for, since a process blocked in a file system does
    /// not die. Returns the answers in order.
    virtual std::vector<Answer> apart(const std::vector<std::function<std::string()>>& work,
                                      std::chrono::milliseconds limit) = 0;
};

} // namespace gpuq
