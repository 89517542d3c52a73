// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "io/private_dir.h"
#include "runs/credentials.h"
#include "supervisor/base/context.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/base/link_files.h"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// The directory on the node that holds a link's tickets: the first of its candidates
/// (io/node_names.h) that exists and belongs to this user. Empty: none.
std::string node_credential_directory(const Options& options);
constexpr const char* k_node_cache = "krb5cc";
constexpr const char* k_node_token = "bearer_token";

/// Location of a link's ticket cache or bearer token: on the node, or, if the job has several
/// nodes, in the run's store, because the other nodes have no supervisor.
struct CachePlace {
    std::string directory, name;
};
CachePlace cache_place(const CredentialPlan& plan, const Run& run, const Options& options);
CachePlace token_place(const CredentialPlan& plan, const Run& run, const Options& options);

/// Values of KRB5CCNAME and BEARER_TOKEN_FILE for processes that join a link running here; nullopt:
/// none.
struct CredentialNames {
    std::optional<std::string> cache, token;
};
CredentialNames credentials_of(const Run& run, const Options& options);

/// The tickets of one link: fetched before its program is started, then kept alive by a child
/// process (keeping.h) of the same executable, which ends with the lifeline.
class LinkCredentials {
public:
    /// Does nothing for a run without a plan. Blocking, like reading the run's record. The program
    /// is started even if this fails; `problem` then holds the error message.
    void fetch(SecretFiles& files, const RunDirectory& directory, const Run& run,
               const Options& options, Time now);
    const std::string& problem() const { return m_problem; }
    /// Readable when there is news; -1: there will be none.
    int news() const { return m_news.get(); }
    /// Events concerning the tickets since the last call, as messages for users.
    std::vector<std::string> take_news();
    /// Messages about directories that another user created first, and the consequence.
    const std::vector<std::string>& taken() const { return m_taken; }
    /// For KRB5CCNAME; nullopt: the run has no tickets.
    const std::optional<std::string>& cache() const { return m_cache; }
    /// For BEARER_TOKEN_FILE; nullopt: the run has no bearer token.
    const std::optional<std::string>& token() const { return m_token; }

    /// Starts the keeper. `link_directory`: a descriptor.
    void start(const Options& options, int link_directory);
    void stop() { m_reconnect.reset(); }
    std::optional<pid_t> pid() const { return m_pid; }
    void reaped() { m_pid.reset(); }

private:
    Result<void> make_directory(const Options& options);
    void fetch_ticket(SecretFiles& files, const CredentialPlan& plan, const Run& run,
                      const Options& options, Time now);
    void fetch_token(SecretFiles& files, const CredentialPlan& plan, const Run& run,
                     const Options& options);

    std::string m_problem;
    std::optional<std::string> m_cache;
    std::optional<std::string> m_token;
    std::optional<pid_t> m_pid;
    Descriptor m_reconnect;
    Descriptor m_news;
    std::string m_line;     ///< an incomplete line
    PrivateDir m_directory; ///< on the node; its lock shows that this link is alive
    std::vector<std::string> m_taken;
};

/// True if this link has had tickets on this node.
bool has_node_credentials(const Options& options);
/// Called when the link has ended: removes its cache from the node and, if the run is over, its
/// part of the run's store. May hang as long as the disk of the store does.
void wipe_credentials(SecretFiles& files, const Options& options, bool run_is_over);

} // namespace gpuq::supervisor
