// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/askpass.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::remote {
namespace {

/// The askpass program that ssh starts for a question, in a child process.
class AskingProgram {
public:
    AskingProgram(const AskPass& askpass, const std::string& question, const char* hint = nullptr)
    {
        Pipe pipe = *make_pipe();
        m_out = std::move(pipe.read);
        m_pid = ::fork();
        if (m_pid == 0) {
            ::dup2(pipe.write.get(), STDOUT_FILENO);
            hint == nullptr ? ::unsetenv("SSH_ASKPASS_PROMPT")
                            : ::setenv("SSH_ASKPASS_PROMPT", hint, 1);
            ::_exit(AskPass::run(askpass.program(), question));
        }
    }
    ~AskingProgram()
    {
        if (m_pid > 0) {
            kill();
            end();
        }
    }
    AskingProgram(const AskingProgram&) = delete;

    void kill() { ::kill(m_pid, SIGKILL); }
    /// Returns the output that ssh would read, followed by the exit status.
    std::string end()
    {
        std::string text;
        std::array<char, 4096> buffer;
        for (ssize_t size = 0;
             m_pid > 0 && (size = ::read(m_out.get(), buffer.data(), buffer.size())) > 0;) {
            text.append(buffer.data(), static_cast<std::size_t>(size));
        }
        int status = 0;
        if (m_pid > 0) {
            ::waitpid(m_pid, &status, 0);
        }
        m_pid = -1;
        return text + std::to_string(WEXITSTATUS(status));
    }

private:
    Descriptor m_out;
    pid_t m_pid = -1;
};

bool is_ready(const AskPass& askpass, int milliseconds = 10'000)
{
    pollfd wait{askpass.descriptor(), askpass.events(), 0};
    return ::poll(&wait, 1, milliseconds) > 0;
}

std::optional<Question> question_of(AskPass& askpass)
{
    std::optional<Question> question;
    while (!question && is_ready(askpass)) {
        question = askpass.next();
    }
    return question;
}

TEST(AskPass, ListensWhereNoOtherUserCanTakeItsPlace)
{
    std::string runtime = testing::TempDir() + "gpuq-askpass-XXXXXX";
    ASSERT_NE(::mkdtemp(runtime.data()), nullptr);
    const char* const before = std::getenv("XDG_RUNTIME_DIR");
    const std::string kept = before == nullptr ? "" : before;
    ::setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
    const auto is_below = [&](mode_t mode) {
        ::chmod(runtime.c_str(), mode);
        const auto made = AskPass::open("/usr/bin/gpuq");
        EXPECT_TRUE(made);
        return made->program().starts_with(runtime + "/");
    };
    EXPECT_TRUE(is_below(0700));
    EXPECT_FALSE(is_below(0777)) << "as if after su(1)";
    kept.empty() ? ::unsetenv("XDG_RUNTIME_DIR") : ::setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
    ::rmdir(runtime.c_str());
}

TEST(AskPass, BringsAQuestionAndItsAnswerOnce)
{
    AskPass askpass = *AskPass::open("/bin/true");
    AskingProgram asker(askpass, "(ada@login1) Password: ");
    const auto question = question_of(askpass);
    ASSERT_TRUE(question);
    EXPECT_EQ(question->text, "(ada@login1) Password: ");
    EXPECT_TRUE(question->expects_answer && askpass.is_asked());
    EXPECT_FALSE(is_ready(askpass, 50)) << "nothing comes while the user types";
    askpass.answer("s3cret");
    askpass.answer("again");
    EXPECT_FALSE(askpass.is_asked());
    EXPECT_EQ(asker.end(), "s3cret\n0");
}

TEST(AskPass, BringsSeveralAfterEachOther)
{
    AskPass askpass = *AskPass::open("/bin/true");
    for (const char* const text : {"Password:", "Code:", ""}) {
        AskingProgram asker(askpass, text);
        ASSERT_EQ(question_of(askpass).value().text, text);
        askpass.answer(text);
        EXPECT_EQ(asker.end(), std::string(text) + "\n0");
    }
}

TEST(AskPass, RefusesWhenItEnds)
{
    auto askpass = std::make_unique<AskPass>(*AskPass::open("/bin/true"));
    AskingProgram asker(*askpass, "Password:");
    ASSERT_TRUE(question_of(*askpass));
    const std::string program = askpass->program();
    struct stat facts {};
    ASSERT_EQ(::lstat(program.c_str(), &facts), 0);
    ASSERT_EQ(::stat(program.substr(0, program.rfind('/')).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777U, 0700U);
    askpass.reset();
    EXPECT_EQ(asker.end(), "1");
    EXPECT_NE(::stat(program.substr(0, program.rfind('/')).c_str(), &facts), 0);
}

TEST(AskPass, KnowsWhenSshIsGone)
{
    AskPass askpass = *AskPass::open("/bin/true");
    AskingProgram asker(askpass, "Password:");
    ASSERT_TRUE(question_of(askpass));
    asker.kill();
    ASSERT_TRUE(is_ready(askpass));
    EXPECT_FALSE(askpass.next());
    EXPECT_FALSE(askpass.is_asked());
    AskingProgram another(askpass, "Code:");
    EXPECT_EQ(question_of(askpass).value().text, "Code:");
}

TEST(AskPass, SaysWhatNeedsNoAnswer)
{
    AskPass askpass = *AskPass::open("/bin/true");
    AskingProgram asker(askpass, "Confirm user presence for key ED25519-SK", "none");
    const auto question = question_of(askpass);
    ASSERT_TRUE(question);
    EXPECT_FALSE(question->expects_answer);
    asker.kill();
}

TEST(AskPass, BoundsWhatAHostAsks)
{
    AskPass askpass = *AskPass::open("/bin/true");
    AskingProgram asker(askpass, std::string(100'000, 'x'));
    EXPECT_EQ(question_of(askpass).value().text.size(), k_longest_question);
}

TEST(AskPass, IsKnownByItsName)
{
    EXPECT_TRUE(AskPass::is_name("/run/user/7/gpuq-ask-x/gpuq-askpass"));
    EXPECT_FALSE(AskPass::is_name("/usr/bin/gpuq"));
    EXPECT_EQ(AskPass::run("/nonexistent/gpuq-askpass", "Password:"), 1);
}

} // namespace
} // namespace gpuq::remote
