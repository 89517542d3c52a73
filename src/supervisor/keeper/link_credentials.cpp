// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/keeper/link_credentials.h"

#include "io/subprocess.h"
#include "supervisor/base/keytab.h"
#include "supervisor/keeper/afs.h"
#include "supervisor/keeper/keeping.h"

#include <fmt/format.h>

#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

constexpr int k_wipe_tries = 20;
constexpr std::chrono::milliseconds k_wipe_pause{20};

/// While this exists, the process leaves no core file and cannot be read by a debugger.
class Secretive {
public:
    Secretive()
        : m_before(::prctl(PR_GET_DUMPABLE))
    {
        ::prctl(PR_SET_DUMPABLE, 0);
    }
    Secretive(const Secretive&) = delete;
    Secretive& operator=(const Secretive&) = delete;
    ~Secretive() { ::prctl(PR_SET_DUMPABLE, m_before); }

private:
    int m_before;
};

std::vector<std::string> directories(const Options& options)
{
    return options.names.directories("krb5", ::geteuid(), options.key, options.link);
}

} // namespace

std::string node_credential_directory(const Options& options)
{
    for (const std::string& path : directories(options)) {
        struct stat facts {};
        if (::lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
            facts.st_uid == ::geteuid()) {
            return path;
        }
    }
    return "";
}

CachePlace cache_place(const CredentialPlan& plan, const Run& run, const Options& options)
{
    if (run.request.nodes > 1) {
        return {plan.directory, k_shared};
    }
    return {node_credential_directory(options), k_node_cache};
}

CachePlace token_place(const CredentialPlan& plan, const Run& run, const Options& options)
{
    const CachePlace cache = cache_place(plan, run, options);
    return {cache.directory, cache.directory == plan.directory ? k_token : k_node_token};
}

CredentialNames credentials_of(const Run& run, const Options& options)
{
    const auto directory = has_node_credentials(options)
                               ? RunDirectory::open(options.state_dir, options.key)
                               : Result<RunDirectory>(fail(Error::Kind::missing, ""));
    const auto text = directory ? directory->credential_plan() : std::nullopt;
    const auto plan = text ? credential_plan_from_json(*text)
                           : Result<CredentialPlan>(fail(Error::Kind::missing, ""));
    CredentialNames names;
    if (plan && !plan->principal.empty()) {
        const CachePlace place = cache_place(*plan, run, options);
        names.cache = fmt::format("FILE:{}/{}", place.directory, place.name);
    }
    if (plan && plan->token) {
        const CachePlace place = token_place(*plan, run, options);
        names.token = fmt::format("{}/{}", place.directory, place.name);
    }
    return names;
}

void LinkCredentials::fetch(SecretFiles& files, const RunDirectory& directory, const Run& run,
                            const Options& options, Time now)
{
    const auto text = directory.credential_plan();
    const auto plan = text ? credential_plan_from_json(*text)
                           : Result<CredentialPlan>(fail(Error::Kind::missing, ""));
    if (!plan) {
        return;
    }
    const Secretive secretive;
    if (const auto made = make_directory(options); !made) {
        m_problem = "can't store its Kerberos ticket on this node: " + made.error().text;
        return;
    }
    if (!plan->principal.empty()) {
        fetch_ticket(files, *plan, run, options, now);
    }
    if (plan->token) {
        fetch_token(files, *plan, run, options);
    }
}

Result<void> LinkCredentials::make_directory(const Options& options)
{
    for (const std::string& path : directories(options)) {
        auto made = make_private_dir_at(path);
        if (made) {
            m_directory = *std::move(made);
            return {};
        }
        if (made.error().kind != Error::Kind::denied) {
            return made.error();
        }
        m_taken.push_back(made.error().text + "; its credentials are stored elsewhere");
    }
    return fail(Error::Kind::denied, m_taken.back());
}

void LinkCredentials::fetch_ticket(SecretFiles& files, const CredentialPlan& plan, const Run& run,
                                   const Options& options, Time now)
{
    const CachePlace place = cache_place(plan, run, options);
    m_cache = fmt::format("FILE:{}/{}", place.directory, place.name);
    const std::string trouble = login_for_store(files, plan, now);
    auto stored = stored_ticket(files, plan.directory, now);
    if (!stored) {
        m_problem = trouble.empty()
                        ? "its Kerberos ticket did not reach this node: " + stored.error().text
                        : "it has no Kerberos ticket: " + trouble;
        return;
    }
    m_problem = trouble.empty() ? "" : "its Kerberos ticket has expired: " + trouble;
    if (const auto written = files.write(place.directory, place.name, stored->cache); !written) {
        m_problem = "can't store its Kerberos ticket: " + written.error().text;
    } else if (!run.request.chain) {
        // No other process needs it, and a shared disk is the weakest place to store it.
        (void)files.remove(plan.directory, k_delivered);
        (void)files.remove(plan.directory, k_renewed);
    }
    ::explicit_bzero(stored->cache.data(), stored->cache.size());
    if (const std::string aklog = aklog_of(plan); !aklog.empty()) {
        make_pag(); // for the program and for the keeper, which renews its tokens
        m_problem = m_problem.empty() ? make_tokens(aklog, *m_cache) : m_problem;
    }
}

void LinkCredentials::fetch_token(SecretFiles& files, const CredentialPlan& plan, const Run& run,
                                  const Options& options)
{
    const CachePlace place = token_place(plan, run, options);
    m_token = fmt::format("{}/{}", place.directory, place.name);
    auto token = files.read(plan.directory, k_token);
    if (token && place.directory != plan.directory) {
        const auto written = files.write(place.directory, place.name, *token);
        if (written && !run.request.chain) {
            (void)files.remove(plan.directory, k_token);
        }
        if (!written) {
            token = written.error();
        }
    }
    if (!token) {
        m_problem = "its bearer token did not reach this node: " + token.error().text;
    } else {
        ::explicit_bzero(token->data(), token->size());
    }
}

void LinkCredentials::start(const Options& options, int link_directory)
{
    if ((!m_cache && !m_token) || options.sampler.empty() || link_directory < 0) {
        return;
    }
    auto lifeline = make_pipe();
    auto news = make_pipe();
    if (!lifeline || !news) {
        return;
    }
    for (const int end : {news->read.get(), news->write.get()}) {
        set_nonblocking(end);
    }
    static_assert(k_keep_directory == 3 && k_keep_lifeline == 4 && k_keep_news == 5);
    const auto keeper =
        spawn({.argv = {"gpuq-supervisor", "keep", options.state_dir, options.key.text(),
                        std::to_string(options.link.value)},
               .executable = options.sampler,
               .descriptors = {Subprocess::k_null, Subprocess::k_null, Subprocess::k_null,
                               link_directory, lifeline->read.get(), news->write.get()}});
    if (keeper) {
        m_pid = keeper->pid;
        m_reconnect = std::move(lifeline->write);
        m_news = std::move(news->read);
    }
}

std::vector<std::string> LinkCredentials::take_news()
{
    std::vector<std::string> lines;
    char piece[1024];
    ssize_t size = 0;
    while (m_news && (size = ::read(m_news.get(), piece, sizeof piece)) > 0) {
        for (const char c : std::string_view(piece, static_cast<std::size_t>(size))) {
            if (c == '\n') {
                lines.push_back(std::exchange(m_line, {}));
            } else {
                m_line += c;
            }
        }
    }
    if (size == 0) {
        m_news.reset();
    }
    return lines;
}

bool has_node_credentials(const Options& options)
{
    return !node_credential_directory(options).empty();
}

void wipe_credentials(SecretFiles& files, const Options& options, bool run_is_over)
{
    const std::string own = node_credential_directory(options);
    // A keeper that is just ending may write a last file.
    for (int tries = 0; !files.remove_directory(own) && tries < k_wipe_tries; ++tries) {
        std::this_thread::sleep_for(k_wipe_pause);
    }
    const auto directory = RunDirectory::open(options.state_dir, options.key);
    if (const auto link =
            directory ? directory->link(options.link) : Result<Descriptor>(directory.error())) {
        ::unlinkat(link->get(), k_credential_plan, 0); // it describes the current state
    }
    const auto text = directory ? directory->credential_plan() : std::nullopt;
    const auto plan = text ? credential_plan_from_json(*text)
                           : Result<CredentialPlan>(fail(Error::Kind::missing, ""));
    if (plan && run_is_over && is_of(*plan, options.key)) {
        (void)files.remove_directory(plan->directory);
    }
}

} // namespace gpuq::supervisor
