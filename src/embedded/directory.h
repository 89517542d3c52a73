// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"
#include "embedded/state.h"

#include <string>
#include <string_view>

/// Files in the two directories of a cluster.
namespace gpuq::embedded {

/// Creates `dir` (0755) or checks an existing one; returns its canonical path. `denied` when it
/// belongs to another user, `usage` when slurm.conf cannot contain the path.
Result<std::string> open_dir(const std::string& dir);

/// Excludes concurrent `gpuq cluster up` and `down` in the same directory.
class Lock {
public:
    static Result<Lock> take(const Places& places);
    Lock(Lock&& other) noexcept;
    Lock& operator=(Lock&&) = delete; ///< released by the destructor
    ~Lock();

private:
    explicit Lock(int fd)
        : m_fd(fd)
    {
    }
    int m_fd;
};

/// Creates the directory for sockets, with an unpredictable name, in /tmp or /var/tmp, whichever
/// first allows executing programs.
Result<std::string> make_run_dir();
/// Removes it if it belongs to this user.
void remove_run_dir(const std::string& run);

/// Replaces the file atomically.
Result<void> write_file(const std::string& path, std::string_view content, unsigned mode);
Result<void> make_dir(const std::string& path, unsigned mode);

/// `missing` when there is no state file.
Result<State> read_state(const Places& places);
Result<void> write_state(const Places& places, const State& state);

/// `io` when the file system of `dir` has too little space for a database.
Result<void> check_room(const std::string& dir);

/// Removes all files of a cluster from `dir`, and `dir` itself if it is empty then.
Result<void> purge_dir(const Places& places);

/// The last lines of a log, without messages that Slurm prints at each start; control characters
/// are replaced.
std::string last_message(const std::string& log_path);

} // namespace gpuq::embedded
