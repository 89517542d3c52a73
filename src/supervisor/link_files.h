// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/node_names.h"
#include "core/result.h"
#include "core/run.h"
#include "runs/journal.h"
#include "supervisor/descriptor.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The folder of a run, held open by descriptor: no symbolic link below the state folder
/// is followed. Blocking; whoever has one calls it from one thread at a time.
class RunFolder {
public:
    /// `missing` when this node does not see the state folder or the run in it.
    static Result<RunFolder> open(const std::string& state_dir, const RunKey& key);

    /// As gpuq extend and gpuq resume have changed it.
    Result<Run> read_run() const;
    /// The text of inbox/stop.json, or of save_and_stop.json, when there is one.
    std::optional<std::string> stop_request() const;
    std::optional<std::string> save_request() const;
    /// Of inbox/rehearsal (runs/rehearsal.h).
    std::optional<std::string> rehearsal_request() const;
    /// Of inbox/exempt.json, and of idle.json (runs/idle.h).
    std::optional<std::string> exemption() const;
    std::optional<std::string> idle_rules() const;
    /// Of credentials.json (runs/credentials.h).
    std::optional<std::string> credential_plan() const;
    /// Takes one of the `most` places for releases of idle GPUs that the owner of this state folder
    /// has in an hour: index/released/NAME. False when they are taken, or nobody can tell; of two
    /// that take the last place at once, perhaps neither gets it.
    bool take_release(const std::string& name, int most, Time now) const;
    /// A job runs this link, or has run it.
    bool is_claimed(LinkNumber link) const;
    /// Makes the folder if need be and opens it. `io` when it is neither there nor can be made.
    Result<Descriptor> link(LinkNumber link) const;
    /// Takes the link for `job`, for good: of several jobs that were made for one run, one may run
    /// it. The same job may ask again. False: it is another's. `io` when nobody can tell.
    Result<bool> claim(LinkNumber link, JobId job) const;
    /// runs/KEY/connect. `missing` when nobody has asked to connect, or the run has ended.
    Result<Descriptor> connect() const;
    /// Removes the keys of `gpuq connect`: a run that has ended lets nobody in.
    void forget_keys() const;
    /// Makes runs/KEY/NAME; an error is for later: the program meets it where it writes.
    void make(const char* name) const;

private:
    explicit RunFolder(Descriptor folder)
        : m_folder(std::move(folder))
    {
    }
    std::optional<std::string> request(const char* name) const;
    Descriptor m_folder;
};

/// The files of a link that the supervisor writes.
struct LinkFiles {
    Descriptor folder;
    std::array<Descriptor, 2> logs; ///< out.log, err.log
    Descriptor order, journal, heartbeat;

    /// Opens what is not open yet. False when something could not be opened.
    bool open();
    bool all_open() const;
    /// A supervisor has been here before.
    bool used() const;
};

/// Appends events to a journal, one writer at a time; a torn line of an earlier one is closed
/// first.
class JournalFile {
public:
    /// `file` outlives the object.
    void use(int file);
    /// False when the line could not be written whole; then none of it stays.
    bool append(const Event& event);

private:
    int m_file = -1;
    std::uint64_t m_size = 0;
};

/// The names that this user's runs have on nodes, by the secret of the state directory, which is
/// made if it is not there. Names without a secret when that fails, or when the state directory is
/// not there.
NodeNames node_names(const std::string& state_dir);

/// The whole of a file of up to 4 MiB below `folder`. `missing` or `io`.
Result<std::string> read_file(int folder, const char* name);

} // namespace gpuq::supervisor
