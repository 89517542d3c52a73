// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/connect_keys.h"

#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using fakes::MemoryStore;
using fakes::RunOnDisk;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ConnectKeysOfARun : public testing::Test {
protected:
    MemoryStore m_store;
    RunOnDisk m_run{m_store, fakes::some_run(Time(), "train")};
    int m_made = 0;

    Result<SshKeyPair> make()
    {
        const std::string number = std::to_string(++m_made);
        return SshKeyPair{"secret " + number + "\n", "ssh-ed25519 AAAA" + number};
    }
    Result<void> prepare()
    {
        return prepare_connect(m_store, m_run.key(), [this] { return make(); });
    }
    std::string file(const char* name)
    {
        return m_store.files[layout::connect_file(m_run.key(), name)];
    }
};

TEST_F(ConnectKeysOfARun, AreFilesForSshAndForSshd)
{
    ASSERT_TRUE(prepare());
    EXPECT_EQ(file("identity"), "secret 1\n");
    EXPECT_EQ(file("authorized_keys"), "ssh-ed25519 AAAA1\n");
    EXPECT_EQ(file("host_key"), "secret 2\n");
    EXPECT_EQ(file("known_hosts"), "gpuq-" + m_run.key().text() + " ssh-ed25519 AAAA2\n");
}

TEST_F(ConnectKeysOfARun, AreMadeOnce)
{
    ASSERT_TRUE(prepare());
    const auto before = m_store.files;
    ASSERT_TRUE(prepare());
    EXPECT_EQ(m_store.files, before);
    EXPECT_EQ(m_made, 2);
}

TEST_F(ConnectKeysOfARun, AreThoseOfWhoeverWasFirst)
{
    const ConnectKeys theirs{{"theirs", "t"}, {"host", "h"}};
    const auto make_late = [&]() -> Result<SshKeyPair> {
        (void)m_store.write_once(layout::connect_file(m_run.key(), "keys.json"), to_json(theirs));
        return make();
    };
    ASSERT_TRUE(prepare_connect(m_store, m_run.key(), make_late));
    EXPECT_EQ(file("identity"), "theirs");
    EXPECT_EQ(file("host_key"), "host");
}

TEST_F(ConnectKeysOfARun, AreCompletedAfterACrash)
{
    ASSERT_TRUE(prepare());
    m_store.files.erase(layout::connect_file(m_run.key(), "host_key"));
    ASSERT_TRUE(prepare());
    EXPECT_EQ(file("host_key"), "secret 2\n");
}

TEST_F(ConnectKeysOfARun, DoNotOutliveARunThatEndsMeanwhile)
{
    m_run.submitted(JobId{7}).started(JobId{7}, Time()).ended({0, Cause::finished, "", Time()});
    EXPECT_EQ(prepare().error().kind, Error::Kind::missing);
    EXPECT_FALSE(m_store.directories.contains(layout::connect_dir(m_run.key())));
}

TEST_F(ConnectKeysOfARun, GoWithTheRun)
{
    ASSERT_TRUE(prepare());
    m_store.files[layout::connect_file(m_run.key(), "sshd_config.n0.7")] = "left by a dead node";
    forget_active(m_store, m_run.key());
    EXPECT_FALSE(m_store.directories.contains(layout::connect_dir(m_run.key())));
    EXPECT_THAT(m_store.list(layout::active()).value(), IsEmpty());
    EXPECT_THAT(m_store.list(layout::run_dir(m_run.key())).value(),
                UnorderedElementsAre("run.json"));
}

TEST_F(ConnectKeysOfARun, AreNotGuessed)
{
    for (const char* text : {"", "{}", "[]", R"({"schema":2})", R"({"schema":1,"user":7})"}) {
        EXPECT_FALSE(connect_keys_from_json(text)) << text;
    }
    m_store.files[layout::connect_file(m_run.key(), "keys.json")] = "torn";
    EXPECT_EQ(prepare().error().kind, Error::Kind::usage);
    EXPECT_EQ(m_made, 0);
}

} // namespace
} // namespace gpuq
