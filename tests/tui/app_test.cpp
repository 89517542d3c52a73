// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/app.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

/// The threads of the view, on a terminal: for the thread sanitizer above all.
namespace gpuq::tui {
namespace {

using namespace std::chrono_literals;

/// The view in a process of its own, since it may end that without returning. A data race found by
/// the thread sanitizer changes its exit status.
class OnTerminal {
public:
    explicit OnTerminal(const std::function<Sources()>& sources)
    {
        const winsize size{24, 80, 0, 0};
        int terminal = -1;
        EXPECT_EQ(::openpty(&m_master, &terminal, nullptr, nullptr, &size), 0);
        m_pid = ::fork();
        if (m_pid == 0) {
            ::close(m_master);
            ::dup2(terminal, STDIN_FILENO);
            ::dup2(terminal, STDOUT_FILENO);
            ::setenv("TERM", "xterm", 1);
            ::setenv("LC_ALL", "C.UTF-8", 1);
            ::_exit(run(sources(), Colours::basic) ? 0 : 1);
        }
        ::close(terminal);
    }
    ~OnTerminal()
    {
        if (m_pid > 0) {
            ::kill(m_pid, SIGKILL);
            ::waitpid(m_pid, nullptr, 0);
        }
        ::close(m_master);
    }
    OnTerminal(const OnTerminal&) = delete;
    OnTerminal& operator=(const OnTerminal&) = delete;

    void type(std::string_view keys) const
    {
        EXPECT_EQ(::write(m_master, keys.data(), keys.size()), std::ssize(keys));
    }

    /// Whether it writes this text, from the last one on that was waited for.
    bool shows(std::string_view text)
    {
        const auto until = std::chrono::steady_clock::now() + 60s;
        std::size_t at = std::string::npos;
        while ((at = m_output.find(text)) == std::string::npos) {
            if (std::chrono::steady_clock::now() > until || !read_more()) {
                ADD_FAILURE() << "not shown: " << text << "\n" << m_output;
                return false;
            }
        }
        m_output.erase(0, at + text.size());
        return true;
    }

    int exit_status()
    {
        while (read_more()) {
        }
        int status = 0;
        EXPECT_EQ(::waitpid(std::exchange(m_pid, 0), &status, 0) > 0, true);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

private:
    /// False at the end.
    bool read_more()
    {
        pollfd ready{m_master, POLLIN, 0};
        char bytes[4096];
        if (::poll(&ready, 1, 60'000) != 1) {
            return false;
        }
        const ssize_t count = ::read(m_master, bytes, sizeof bytes);
        m_output.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        return count > 0;
    }

    int m_master = -1;
    pid_t m_pid = 0;
    std::string m_output;
};

/// State shared by the functions that the view calls.
struct Outside {
    std::atomic<bool> has_ended = false, noticed = false;
    std::atomic<int> lines = 0;
};

Time clock_now()
{
    return std::chrono::floor<Time::duration>(std::chrono::system_clock::now());
}

Picture one_run(bool has_ended)
{
    Picture made;
    made.cluster = "centre";
    made.slurm_at = clock_now();
    RunRow row;
    row.key = "key0";
    row.id = "100";
    row.name = "train";
    row.active = row.running = !has_ended;
    row.state = has_ended ? "done" : "running";
    row.mark = has_ended ? RunMark::done : RunMark::running;
    made.runs.push_back(row);
    return made;
}

/// One run, which ends while a command has the terminal.
Sources sources_of(const std::shared_ptr<Outside>& outside)
{
    Sources all;
    all.now = clock_now;
    all.read_picture = [outside] { return one_run(outside->has_ended); };
    all.read_detail = [](const std::string& key, Depth) {
        Detail detail;
        detail.key = key;
        detail.facts = {"a fact from its files"};
        return detail;
    };
    all.compare = [](const std::vector<std::string>& keys) {
        Comparison comparison;
        comparison.keys = keys;
        return comparison;
    };
    all.ask = [](Anew) {};
    all.read = [outside](const OpenLog& log, bool begin) {
        const std::string line = "line " + std::to_string(++outside->lines) + "\n";
        return std::optional(LogBytes{log.key, log.stream, line, begin, 0, ""});
    };
    all.command = [outside](const Command& command) {
        if (!command.on_terminal) {
            return Done{"stopped it", false};
        }
        outside->has_ended = true;
        for (int i = 0; i < 6000 && !outside->noticed; ++i) {
            std::this_thread::sleep_for(10ms);
        }
        return Done{outside->noticed ? "" : "no notice", !outside->noticed};
    };
    all.try_out = [](const Try&) { return Done{"would start it", false}; };
    all.complete = [](const std::vector<std::string>& arguments) {
        return arguments.back() == "x" ? std::vector<std::string>{}
                                       : std::vector<std::string>{"train.py"};
    };
    all.notify = [outside](const Notify&) { outside->noticed = true; };
    return all;
}

OnTerminal a_view()
{
    return OnTerminal([] { return sources_of(std::make_shared<Outside>()); });
}

TEST(App, TakesMessagesWhileACommandHasTheTerminal)
{
    OnTerminal view = a_view();
    ASSERT_TRUE(view.shows("a fact from its files"));
    view.type("v");
    EXPECT_TRUE(view.shows("run 100 (train): done")) << "in the message that it shows afterwards";
    view.type("q");
    EXPECT_EQ(view.exit_status(), 0);
}

TEST(App, AllItsThreadsAtWork)
{
    OnTerminal view = a_view();
    ASSERT_TRUE(view.shows("a fact from its files"));
    view.type("\r");
    EXPECT_TRUE(view.shows("line 3")) << "the log";
    view.type("\x1b");
    EXPECT_TRUE(view.shows("a fact from its files"));
    view.type("+tr\t");
    EXPECT_TRUE(view.shows("would start it"));
    view.type("\x03");
    view.type("x");
    EXPECT_TRUE(view.shows("y/N"));
    view.type("y");
    EXPECT_TRUE(view.shows("stopped it"));
    view.type("\x03");
    EXPECT_EQ(view.exit_status(), 0);
}

TEST(App, AnswersTheFormIfAWordIsCompletedBeforeThePauseInTyping)
{
    OnTerminal view = a_view();
    ASSERT_TRUE(view.shows("a fact from its files"));
    view.type("+");
    ASSERT_TRUE(view.shows("start a run"));
    view.type("x");
    std::this_thread::sleep_for(100ms);
    view.type("\t"); // no word begins with x: nothing changes, and nothing else is asked
    EXPECT_TRUE(view.shows("would start it"));
    view.type("\x03\x03");
    EXPECT_EQ(view.exit_status(), 0);
}

} // namespace
} // namespace gpuq::tui
