// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/result.h"
#include "core/run.h"
#include "io/node_names.h"
#include "runs/records/journal.h"
#include "supervisor/base/descriptor.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The directory of a run, held open by a descriptor: no symbolic link below the state directory is
/// followed. Blocking; the owner calls it from one thread at a time.
class RunDirectory {
public:
    /// `missing` if this node does not see the state directory or the run in it.
    static Result<RunDirectory> open(const std::string& state_dir, const RunKey& key);

    /// Includes changes made by gpuq extend and gpuq resume.
    Result<Run> read_run() const;
    /// The text of inbox/stop.json or save_and_stop.json, if present.
    std::optional<std::string> stop_request() const;
    std::optional<std::string> save_request() const;
    /// The text of inbox/rehearsal (runs/insight/rehearsal.h).
    std::optional<std::string> rehearsal_request() const;
    /// The text of inbox/exempt.json and of idle.json (runs/idle.h).
    std::optional<std::string> exemption() const;
    std::optional<std::string> idle_rules() const;
    /// The text of credentials.json (runs/credentials.h).
    std::optional<std::string> credential_plan() const;
    /// Takes one of the `most` releases of idle GPUs per hour that the owner of this state
    /// directory is allowed: index/released/NAME. False if all are taken, or if that cannot be
    /// determined. If two runs take the last one at the same time, possibly neither gets it.
    bool take_release(const std::string& name, int most, Time now) const;
    /// True if a job runs this link or has run it.
    bool is_claimed(LinkNumber link) const;
    /// Creates the directory if necessary and opens it. Fails if it can be neither opened nor
    /// created.
    Result<Descriptor> link(LinkNumber link) const;
    /// Claims the link for `job`, permanently: if several jobs were created for one run, only one
    /// may run it. The same job may repeat the call. False: it belongs to another job. `io` if that
    /// cannot be determined.
    Result<bool> claim(LinkNumber link, JobId job) const;
    /// Opens runs/KEY/connect. `missing` if no client has requested a connection, or the run has
    /// ended.
    Result<Descriptor> connect() const;
    /// Removes the keys of `gpuq connect`: a run that has ended accepts no connections.
    void forget_keys() const;
    /// Creates runs/KEY/NAME. Errors are ignored: the program gets them when it writes to it.
    void make(const char* name) const;

private:
    explicit RunDirectory(Descriptor directory)
        : m_directory(std::move(directory))
    {
    }
    std::optional<std::string> request(const char* name) const;
    Descriptor m_directory;
};

/// The files of a link that are written by the supervisor.
struct LinkFiles {
    Descriptor directory;
    std::array<Descriptor, 2> logs; ///< out.log, err.log
    Descriptor order, journal, heartbeat;

    /// Opens the files that are not open yet. False if one could not be opened.
    bool open();
    bool all_open() const;
    /// True if an earlier supervisor has used them.
    bool used() const;
};

/// Appends events to a journal, which has one writer at a time. If an earlier writer left a
/// truncated line, it is terminated first.
class JournalFile {
public:
    /// `file` must outlive the object.
    void use(int file);
    /// False if the line could not be written completely; the part that was written is removed.
    bool append(const Event& event);

private:
    int m_file = -1;
    std::uint64_t m_size = 0;
};

/// The names that this user's runs have on nodes, derived from the secret of the state directory,
/// which is created if necessary. Without a secret if that fails, or if there is no state
/// directory.
NodeNames node_names(const std::string& state_dir);

/// Reads a file of up to 4 MiB in `directory`. `missing` or `io`.
Result<std::string> read_file(int directory, const char* name);

} // namespace gpuq::supervisor
