// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/config.h"
#include "cli/base/options.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/ssh_key.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {
class Accounting;
class Admin;
class Clock;
class Cluster;
class Files;
class Host;
class LoginTickets;
class SecretFiles;
class Store;
class SubmitScript;
class UseRecords;
} // namespace gpuq

namespace gpuq::cli {

struct TextFile {
    std::string text;
    std::uint32_t owner = 0;
    std::uint32_t mode = 0; ///< permission bits
    /// Why it must not be obeyed: others may change it (io/trusted_path.h).
    std::optional<Error> distrust = {};
};

/// The interfaces that a verb may use, each opened on first use: `gpuq --help` opens none, `gpuq
/// logs` no Slurm. References are valid for the lifetime of the object.
class Services {
public:
    virtual ~Services() = default;
    virtual Result<Cluster*> cluster() = 0;
    virtual Result<Accounting*> accounting() = 0;
    /// Uses the same slurmdbd.
    virtual Result<UseRecords*> use_records() = 0;
    virtual Result<Admin*> admin() = 0;
    /// The output of `sacct -P` for the jobs of all users submitted since then, for
    /// sim::parse_trace. `unreachable`.
    virtual Result<std::string> jobs_since(Time since) = 0;
    virtual Result<Store*> store() = 0;
    /// The state directory that `store` would open. Reads only configuration files.
    virtual Result<std::string> state_dir() = 0;
    virtual Host& host() = 0;
    virtual Files& program_files() = 0;
    virtual SecretFiles& secret_files() = 0;
    /// The credentials of the calling user.
    virtual LoginTickets& login_tickets() = 0;
    virtual Clock& clock() = 0;
    /// Random bytes for a new key.
    virtual std::array<unsigned char, 8> random() = 0;
    /// A variable of the environment, or nothing.
    virtual std::optional<std::string> variable(const std::string& name) = 0;
    /// No child and no record contains it from now on.
    virtual void forget_variable(const std::string& name) = 0;
    /// The whole environment, NAME=VALUE.
    virtual std::vector<std::string> environment() = 0;
    /// Absolute path of gpuq-supervisor, as the nodes see it.
    virtual Result<std::string> supervisor() = 0;
    /// Absolute path of this program, for a command line that another process executes.
    virtual Result<std::string> program() = 0;
    /// A file of at most `most` bytes, and its owner. `missing`, `io`; `usage` if it is larger, or
    /// no regular file.
    virtual Result<TextFile> text_file(const std::string& path, std::size_t most) = 0;
    /// A job_submit.lua, loaded into a Lua interpreter.
    virtual Result<std::unique_ptr<SubmitScript>> submit_script(const std::string& text) = 0;
    /// A new key pair without a passphrase.
    virtual Result<SshKeyPair> new_ssh_key() = 0;
    /// Variables and configuration files (config.h).
    virtual Result<Settings> settings() = 0;
    /// --cluster NAME: the cluster for `cluster` and `accounting` to open.
    virtual void choose_cluster(const std::string& name) = 0;
    /// The same by slurm.conf, for a cluster that has just been started.
    virtual void choose_configuration(const std::string& slurm_conf) = 0;
    /// Whether this process was started by `gpuq serve`: its user is at another machine.
    virtual bool is_served() const { return false; }
    /// Sends one line to that serve (remote/verb_process.h); does nothing if there is none.
    virtual void send_to_serve(const std::string& line) const { (void)line; }
    /// Makes that serve mark the end of the output so far; returns the number of the mark.
    virtual std::uint64_t mark_output() { return 0; }
    /// The last mark up to which output is known to have been shown to the user.
    virtual std::uint64_t marks_shown() { return 0; }
};

/// Options that every verb accepts.
struct Globals {
    bool json = false;
    bool no_header = false;
    bool quiet = false;
    std::size_t verbose = 0; ///< how often -v was given
    std::string columns;     ///< comma-separated; empty: the verb's default
    std::string cluster;     ///< --cluster; empty: the one that is detected
    enum class Color { automatic, always, never } color = Color::automatic;
};

/// One use of a verb: its arguments, and the interfaces it may use. The options have been checked
/// against the verb's table; global ones are in `globals`.
struct Invocation {
    Services& services;
    Globals globals;
    std::vector<std::string> arguments; ///< operands
    Options options;
    std::optional<std::size_t> before_dashes = {}; ///< as in Parsed
};

/// A row of the table of verbs (verbs.cpp), which dispatch, help, completion and the check of the
/// man pages use.
struct Verb {
    std::string_view name;
    std::string_view synopsis; ///< `gpuq logs [-f] RUN`
    std::string_view summary;  ///< one line
    /// Returns the exit status; the caller prints an error as `gpuq: TEXT` and maps it.
    Result<int> (*run)(Invocation&);
    std::span<const Option> options = {};
    Order order = Order::mixed;
};

using Verbs = std::span<const Verb* const>;

/// The row of a verb, or null.
const Verb* find_verb(Verbs verbs, std::string_view name);

/// Options that every verb accepts, before or after its name.
std::span<const Option> global_options();

/// The verb's own options and the global ones, as one table for the parser and completion.
std::vector<Option> all_options(const Verb& verb);

} // namespace gpuq::cli
