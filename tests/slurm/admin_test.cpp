// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/admin.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace gpuq {
namespace {

/// A directory of commands that replaces PATH, and their slurm.conf.
class FakeCommands {
public:
    FakeCommands()
    {
        std::string pattern = testing::TempDir() + "gpuq-admin-XXXXXX";
        m_directory = ::mkdtemp(pattern.data());
        std::ofstream(path("slurm.conf")) << "ClusterName=local\n";
    }
    ~FakeCommands() { std::filesystem::remove_all(m_directory); }
    FakeCommands(const FakeCommands&) = delete;
    FakeCommands& operator=(const FakeCommands&) = delete;

    std::string path(const std::string& name) const { return m_directory + "/" + name; }

    void add(const std::string& name, const std::string& script) const
    {
        std::ofstream(path(name)) << "#!/bin/sh\ncd " << m_directory << "\n" << script;
        std::filesystem::permissions(path(name), std::filesystem::perms::owner_all);
    }

    /// The version of the loaded script according to them; the reason if it is unknown.
    std::string loaded_script() const
    {
        ::setenv("PATH", (m_directory + ":/usr/bin:/bin").c_str(), 1);
        const auto admin = SlurmAdmin::open(path("slurm.conf"));
        const auto loaded = admin.value()->loaded_script();
        return loaded ? loaded->value_or("none") : loaded.error().text;
    }

private:
    std::string m_directory;
};

constexpr const char* k_gone =
    "echo 'allocation failure: Zero Bytes were transmitted or received' >&2\nexit 1\n";

// In processes of their own: each can use one slurm.conf only.
TEST(LoadedScript, IsAskedForAgainIfSlurmctldWasReplacedMeanwhile)
{
    const FakeCommands fake;
    fake.add("scontrol", "echo 'Slurmctld(primary) at login1 is UP'\n");
    fake.add("sbatch", std::string("if [ -e asked ]; then echo 'error: gpuq-policy "
                                   "0123456789abcdef' >&2; exit 1; fi\ntouch asked\n") +
                           k_gone);
    EXPECT_EXIT(std::exit(fake.loaded_script() == "0123456789abcdef" ? 0 : 1),
                testing::ExitedWithCode(0), "");
}

TEST(LoadedScript, IsUnknownIfSlurmctldStaysAway)
{
    const FakeCommands fake;
    fake.add("scontrol", "echo 'Slurmctld(primary) at login1 is UP'\n");
    fake.add("sbatch", k_gone);
    EXPECT_EXIT(std::exit(fake.loaded_script().find("Zero Bytes") != std::string::npos ? 0 : 1),
                testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace gpuq
