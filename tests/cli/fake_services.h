// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "fakes/fake_admin.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/fake_credentials.h"
#include "fakes/fake_files.h"
#include "fakes/fake_host.h"
#include "fakes/memory_store.h"
#include "ports/submit_script.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace gpuq::cli {

/// Fakes for all services; counts which Slurm services were opened.
class FakeServices : public Services {
public:
    fakes::MemoryStore memory;
    Store* directory = &memory;
    fakes::FakeClock time;
    fakes::FakeCluster slurm;
    fakes::FakeAccounting past;
    fakes::FakeAdmin ruler;
    fakes::FakeHost machine;
    fakes::FakeFiles on_disk;
    Settings set;
    std::map<std::string, std::string> variables;
    int slurm_opened = 0;
    int ssh_keys_made = 0;

    Result<Cluster*> cluster() override
    {
        ++slurm_opened;
        return &slurm;
    }
    Result<Accounting*> accounting() override { return &past; }
    Result<UseRecords*> use_records() override { return &past; }
    Result<Admin*> admin() override { return &ruler; }
    Result<std::string> accounted = fail(Error::Kind::unreachable, "slurmdbd does not answer");
    std::optional<Time> accounted_since; ///< argument of the last call
    Result<std::string> jobs_since(Time since) override
    {
        accounted_since = since;
        return accounted;
    }
    Result<Store*> store() override { return directory; }
    Result<std::string> state_dir() override { return directory->root(); }
    Host& host() override { return machine; }
    Files& program_files() override { return on_disk; }
    fakes::FakeSecretFiles secrets;
    fakes::FakeLoginTickets login;
    SecretFiles& secret_files() override { return secrets; }
    LoginTickets& login_tickets() override { return login; }
    Clock& clock() override { return time; }
    std::optional<std::string> variable(const std::string& name) override
    {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    }
    void forget_variable(const std::string& name) override { variables.erase(name); }
    std::vector<std::string> environment() override { return {}; }
    Result<std::string> supervisor() override { return std::string("/gpuq-supervisor"); }
    Result<std::string> program() override { return std::string("/usr/bin/gpuq"); }
    std::map<std::string, TextFile> files;
    Result<TextFile> text_file(const std::string& path, std::size_t) override
    {
        const auto found = files.find(path);
        return found == files.end() ? Result<TextFile>(fail(Error::Kind::missing, path + ": none"))
                                    : found->second;
    }
    Result<std::unique_ptr<SubmitScript>> submit_script(const std::string&) override
    {
        return fail(Error::Kind::internal, "no Lua here");
    }
    Result<SshKeyPair> new_ssh_key() override
    {
        ++ssh_keys_made;
        return SshKeyPair{"SECRET" + std::to_string(ssh_keys_made) + "\n",
                          "ssh-ed25519 AAAA" + std::to_string(ssh_keys_made)};
    }
    std::array<unsigned char, 8> random() override { return {}; }
    Result<Settings> settings() override { return set; }
    void choose_cluster(const std::string&) override {}
    void choose_configuration(const std::string&) override {}
};

/// Result of one call of a verb.
struct Use {
    int status = 0;
    std::string out;
    std::string err; ///< includes the error, as the caller would print it
};

/// Runs a verb as if a user had typed it.
inline Use use(const Verb& verb, Services& services, const std::vector<std::string>& arguments,
               Globals globals = {})
{
    Use result;
    auto parsed = parse_options(verb.options, verb.order, arguments);
    if (!parsed) {
        return {2, "", parsed.error().text};
    }
    Invocation invocation{services, std::move(globals), parsed->operands, parsed->options,
                          parsed->before_dashes};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto status = verb.run(invocation);
    result.out = testing::internal::GetCapturedStdout();
    result.err = testing::internal::GetCapturedStderr();
    result.status = status ? *status : static_cast<int>(exit_status_of(status.error().kind));
    result.err += status ? "" : status.error().text;
    return result;
}

} // namespace gpuq::cli
