// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/private_dir.h"
#include "core/run.h"
#include "runs/credentials.h"
#include "supervisor/descriptor.h"
#include "supervisor/link_files.h"
#include "supervisor/supervise.h"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// The directory on the node where a link keeps its tickets: the first of its candidates
/// (core/node_names.h) that is there and this user's. Empty: there is none.
std::string node_credential_folder(const Options& options);
constexpr const char* k_node_cache = "krb5cc";
constexpr const char* k_node_token = "bearer_token";

/// Where a link's cache, and its bearer token, lie: on the node, or of a job of several nodes,
/// whose other nodes have no supervisor, in the run's store.
struct CachePlace {
    std::string folder, name;
};
CachePlace cache_place(const CredentialPlan& plan, const Run& run, const Options& options);
CachePlace token_place(const CredentialPlan& plan, const Run& run, const Options& options);

/// For KRB5CCNAME and BEARER_TOKEN_FILE of who comes to a link that runs here. Nothing: it has
/// none.
struct CredentialNames {
    std::optional<std::string> cache, token;
};
CredentialNames credentials_of(const Run& run, const Options& options);

/// The tickets of one link: fetched before its program is started, then kept alive by a child
/// (keeping.h) that is of the same executable and ends with the lifeline.
class LinkCredentials {
public:
    /// Does nothing for a run that has no plan. Blocking, as reading the run's record is. Whatever
    /// goes wrong, the program is started: `problem` says what, empty for nothing.
    void fetch(SecretFiles& files, const RunFolder& folder, const Run& run, const Options& options,
               Time now);
    const std::string& problem() const { return m_problem; }
    /// Readable when there is news; -1: there will be none.
    int news() const { return m_news.get(); }
    /// What has happened to the tickets since, in words.
    std::vector<std::string> take_news();
    /// Directories that another user made before this link could, and what it does about it.
    const std::vector<std::string>& taken() const { return m_taken; }
    /// For KRB5CCNAME; nothing: the run has no tickets.
    const std::optional<std::string>& cache() const { return m_cache; }
    /// For BEARER_TOKEN_FILE; nothing: the run has no bearer token.
    const std::optional<std::string>& token() const { return m_token; }

    /// Begins to keep them alive. `link_folder`: a descriptor.
    void start(const Options& options, int link_folder);
    void stop() { m_lifeline.reset(); }
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
    Descriptor m_lifeline;
    Descriptor m_news;
    std::string m_line;     ///< that has begun
    PrivateDir m_directory; ///< on the node; its lock says that this link is alive
    std::vector<std::string> m_taken;
};

/// This link has had tickets, or has some still.
bool has_node_credentials(const Options& options);
/// The link has ended: its cache on the node goes, and the run's store where the run is over too.
/// May hang as long as the disk of the store does.
void wipe_credentials(SecretFiles& files, const Options& options, bool run_is_over);

} // namespace gpuq::supervisor
