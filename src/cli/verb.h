// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/config.h"
#include "cli/options.h"
#include "core/result.h"
#include "core/ssh_key.h"
#include "ports/admin.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/credentials.h"
#include "ports/files.h"
#include "ports/host.h"
#include "ports/store.h"
#include "ports/submit_script.h"
#include "ports/use_records.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

struct TextFile {
    std::string text;
    std::uint32_t owner = 0;
    std::uint32_t mode = 0; ///< permission bits
    /// Why it must not be obeyed: others may change it (core/trusted_path.h).
    std::optional<Error> distrust = {};
};

/// The doors, each opened at its first use: `gpuq --help` opens none, `gpuq logs` no Slurm.
/// References live as long as the object.
class Doors {
public:
    virtual ~Doors() = default;
    virtual Result<Cluster*> cluster() = 0;
    virtual Result<Accounting*> accounting() = 0;
    /// The same slurmdbd.
    virtual Result<UseRecords*> use_records() = 0;
    virtual Result<Admin*> admin() = 0;
    /// What `sacct -P` prints of the jobs of everybody that were submitted since then, for
    /// sim::parse_trace. `unreachable`.
    virtual Result<std::string> jobs_since(Time since) = 0;
    virtual Result<Store*> store() = 0;
    /// Where `store` would open the state folder. Touches no file but the configuration's.
    virtual Result<std::string> state_dir() = 0;
    virtual Host& host() = 0;
    virtual Files& program_files() = 0;
    virtual SecretFiles& secret_files() = 0;
    /// Of whoever calls gpuq.
    virtual LoginTickets& login_tickets() = 0;
    virtual Clock& clock() = 0;
    /// Randomness, for a new key.
    virtual std::array<unsigned char, 8> random() = 0;
    /// Variable of the environment, or nothing.
    virtual std::optional<std::string> variable(const std::string& name) = 0;
    /// No child and no record gets it from now on.
    virtual void forget_variable(const std::string& name) = 0;
    /// The whole environment, NAME=VALUE.
    virtual std::vector<std::string> environment() = 0;
    /// Absolute path of gpuq-supervisor, as the nodes see it.
    virtual Result<std::string> supervisor() = 0;
    /// Absolute path of this program, for a command line that somebody else executes.
    virtual Result<std::string> program() = 0;
    /// A file of at most `most` bytes, and whose it is. `missing`, `io`; `usage` when it is larger.
    virtual Result<TextFile> text_file(const std::string& path, std::size_t most) = 0;
    /// A job_submit.lua, loaded into a Lua.
    virtual Result<std::unique_ptr<SubmitScript>> submit_script(const std::string& text) = 0;
    /// A new key pair without a passphrase.
    virtual Result<SshKeyPair> new_ssh_key() = 0;
    /// Variables and configuration files (config.h).
    virtual Result<Settings> settings() = 0;
    /// --cluster NAME: the cluster that `cluster` and `accounting` are to open.
    virtual void choose_cluster(const std::string& name) = 0;
    /// The same by its slurm.conf, for a cluster that has only just been started.
    virtual void choose_configuration(const std::string& slurm_conf) = 0;
    /// This process was started by `gpuq serve`: somebody is at another machine's keyboard.
    virtual bool is_served() const { return false; }
    /// One line to that serve (remote/verb_process.h); no deed without one.
    virtual void tell_serve(const std::string& line) const { (void)line; }
    /// Has that serve mark what has been written until now: the number of the mark.
    virtual std::uint64_t mark_output() { return 0; }
    /// The last mark up to which the person has been shown what was written, as far as is known.
    virtual std::uint64_t marks_shown() { return 0; }
};

/// Options that every verb takes.
struct Globals {
    bool json = false;
    bool no_header = false;
    bool quiet = false;
    std::string columns; ///< comma-separated, empty: the verb's own
    std::string cluster; ///< --cluster; empty: the one that is found
    enum class Color { automatic, always, never } color = Color::automatic;
};

/// One use of a verb: what stands after it, and what it may touch. The options have been checked
/// against the verb's table; global ones are in `globals`.
struct Invocation {
    Doors& doors;
    Globals globals;
    std::vector<std::string> words; ///< operands
    Options options;
};

/// A row of the table of verbs (verbs.cpp): dispatch, help, completion and the man page check read
/// it.
struct Verb {
    std::string_view name;
    std::string_view synopsis; ///< `gpuq logs [-f] RUN`
    std::string_view summary;  ///< one line
    /// The exit status; an error is printed by the caller as `gpuq: TEXT` and mapped.
    Result<int> (*run)(Invocation&);
    std::span<const Option> options = {};
    Order order = Order::mixed;
};

} // namespace gpuq::cli
