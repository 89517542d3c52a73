// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"
#include "embedded/state.h"

#include <string>
#include <string_view>

/// The two folders of a cluster on disk.
namespace gpuq::embedded {

/// Makes `dir` (0755, its owner alone writes) or checks the one that is there; gives its real path.
/// `denied` when it belongs to somebody else, `usage` when slurm.conf could not hold the path.
Result<std::string> open_dir(const std::string& dir);

/// Holds off other `gpuq cluster up` and `down` in the same folder.
class Lock {
public:
    static Result<Lock> take(const Places& places);
    Lock(Lock&& other) noexcept;
    Lock& operator=(Lock&&) = delete; ///< released by its end
    ~Lock();

private:
    explicit Lock(int fd)
        : m_fd(fd)
    {
    }
    int m_fd;
};

/// Makes the folder for sockets: a new one of unpredictable name, in the first of /tmp and
/// /var/tmp that runs programs.
Result<std::string> make_run_dir();
/// Removes it; leaves alone what is not ours.
void remove_run_dir(const std::string& run);

/// Old or new content, never a mixture.
Result<void> write_file(const std::string& path, std::string_view content, unsigned mode);
Result<void> make_dir(const std::string& path, unsigned mode);

/// `missing` when there is no state file.
Result<State> read_state(const Places& places);
Result<void> write_state(const Places& places, const State& state);

/// `io` with a sentence when the disk under `dir` has too little room for a database.
Result<void> check_room(const std::string& dir);

/// Removes what clusters put into `dir`, and `dir` when nothing else is in it.
Result<void> purge_dir(const Places& places);

/// The last lines of a log, without what Slurm says at each start; control characters replaced.
std::string last_words(const std::string& log_path);

} // namespace gpuq::embedded
