// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sshd/ssh_server.h"

#include "core/exit_status.h"
#include "supervisor/stage.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

namespace fs = std::filesystem;

/// serve_ssh with a script instead of sshd and pipes as standard streams.
class SshServer : public testing::Test {
protected:
    Stage m_stage = Stage::shell("true");
    fs::path m_run = m_stage.options.state_dir + "/" + layout::run_dir(m_stage.run.key);
    pid_t m_pid = -1;
    Descriptor m_to, m_from, m_errors;

    ~SshServer() override
    {
        if (m_pid > 0) {
            ::kill(m_pid, SIGKILL);
            ::waitpid(m_pid, nullptr, 0);
        }
    }

    void sshd(const std::string& script)
    {
        const fs::path file = m_stage.root() / "bin" / "sshd";
        fs::create_directories(file.parent_path());
        fs::create_directories(m_run / "connect");
        put(file, "#!/bin/sh\n" + script);
        fs::permissions(file, fs::perms::owner_all);
    }

    void serve()
    {
        put(m_run / "run.json", to_json(m_stage.run));
        Pipe in = make_pipe().value();
        Pipe out = make_pipe().value();
        Pipe err = make_pipe().value();
        m_pid = ::fork();
        if (m_pid == 0) {
            ::dup2(in.read.get(), 0);
            ::dup2(out.write.get(), 1);
            ::dup2(err.write.get(), 2);
            for (int fd = 3; fd < 256; ++fd) {
                ::close(fd);
            }
            const std::string path = (m_stage.root() / "bin").string() + ":/usr/bin:/bin";
            ::setenv("PATH", path.c_str(), 1);
            ::setenv("SLURM_JOB_ID", "42", 1);
            ::_exit(serve_ssh(m_stage.options));
        }
        m_to = std::move(in.write);
        m_from = std::move(out.read);
        m_errors = std::move(err.read);
    }

    static std::string all_of(const Descriptor& from)
    {
        std::string text;
        char piece[4096];
        for (ssize_t size = 0; (size = ::read(from.get(), piece, sizeof piece)) > 0;) {
            text.append(piece, static_cast<std::size_t>(size));
        }
        return text;
    }

    /// Output of sshd, decoded from its frames.
    std::string printed() const
    {
        wire::Decoder decoder;
        decoder.feed(all_of(m_from));
        std::string text;
        for (auto frame = decoder.next(); frame && *frame; frame = decoder.next()) {
            if (const auto* output = std::get_if<wire::Output>(&**frame)) {
                text += output->bytes;
            }
        }
        return text;
    }

    int wait()
    {
        int status = 0;
        EXPECT_TRUE(eventually([&] { return ::waitpid(m_pid, &status, WNOHANG) == m_pid; }));
        m_pid = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
};

TEST_F(SshServer, GivesSshdItsInputAndCarriesItsOutput)
{
    sshd("echo $1 $2 $3; cat");
    serve();
    write_all(m_to.get(), "no newline");
    m_to.reset();
    EXPECT_EQ(printed(), "-i -e -f\nno newline");
    EXPECT_EQ(wait(), 0);
    EXPECT_TRUE(fs::is_empty(m_run / "connect")) << "its settings go with it";
}

TEST_F(SshServer, SaysThatTheNodeHasNoSshd)
{
    ::setenv("GPUQ_SSHD", "/nonexistent/sshd", 1);
    m_stage.options.node = "n7";
    serve();
    ::unsetenv("GPUQ_SSHD");
    EXPECT_EQ(printed(), "");
    EXPECT_EQ(wait(), k_status_no_sshd);
    EXPECT_EQ(
        all_of(m_errors),
        "gpuq: no sshd on node n7: install OpenSSH's server on it (it need not be running)\n");
}

TEST_F(SshServer, TellsSshdOfTheJob)
{
    sshd("cat \"$4\"; stat -c %a \"$4\"");
    m_stage.run.request.setup.env = {{"FOO", "a b"}};
    serve();
    const std::string config = printed();
    EXPECT_NE(config.find("\"SLURM_JOB_ID=42\""), std::string::npos);
    EXPECT_NE(config.find("\"GPUQ_RUN_ID=" + m_stage.run.key.text() + "\""), std::string::npos);
    EXPECT_NE(config.find("\"FOO=a b\""), std::string::npos);
    EXPECT_TRUE(config.ends_with("\n600\n"));
}

TEST_F(SshServer, LeavesNoProcessOfAConnectionThatHasEnded)
{
    sshd("setsid sh -c 'echo $$; exec >&- 2>&-; exec sleep 1000' & read line; sleep 0.1");
    serve();
    write_all(m_to.get(), "\n");
    const std::string text = printed();
    EXPECT_EQ(wait(), 0);
    ASSERT_FALSE(text.empty());
    EXPECT_TRUE(is_gone(std::stoi(text)));
}

TEST_F(SshServer, EndsWithItsJobWhateverRunsInIt)
{
    sshd("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    serve();
    std::string first(6, '\0');
    pollfd ready{m_from.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 20'000), 1);
    ::kill(m_pid, SIGTERM);
    EXPECT_EQ(wait(), 0);
    EXPECT_TRUE(fs::is_empty(m_run / "connect"));
}

TEST_F(SshServer, LetsNobodyIntoARunWithoutKeys)
{
    sshd("echo in");
    fs::remove(m_run / "connect");
    serve();
    EXPECT_EQ(printed(), "");
    EXPECT_NE(wait(), 0);
    EXPECT_EQ(all_of(m_errors), "gpuq: connect: No such file or directory\n");
}

TEST_F(SshServer, TheEndOfTheRunTakesTheKeysAway)
{
    fs::create_directories(m_run / "connect");
    put(m_run / "connect" / "identity", "secret");
    Client client = m_stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_FALSE(fs::exists(m_run / "connect"));
}

TEST(FindSshd, LooksInThePathFirst)
{
    EXPECT_NE(find_sshd(nullptr, "bin:/nonexistent").value_or("/somewhere"), "bin/sshd");
    EXPECT_EQ(find_sshd("/bin/sh", "/bin"), "/bin/sh");
    EXPECT_EQ(find_sshd("/nonexistent/sshd", "/usr/sbin"), std::nullopt);
}

} // namespace
} // namespace gpuq::supervisor
