// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/raw_terminal.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// A terminal with a login session, in which a test runs functions in child processes.
class Login {
public:
    Login()
        : m_master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC))
    {
        ::grantpt(m_master);
        ::unlockpt(m_master);
        char name[64] = "";
        ::ptsname_r(m_master, name, sizeof name);
        m_name = name;
        m_slave = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    }
    ~Login()
    {
        if (m_leader > 0) {
            ::kill(m_leader, SIGKILL);
            ::waitpid(m_leader, nullptr, 0);
        }
        ::close(m_slave);
        ::close(m_master);
    }
    Login(const Login&) = delete;

    /// Runs `what` in a foreground process on the terminal. Returns its wait status.
    int status_of(const std::function<void(RawTerminal&)>& what)
    {
        int report[2];
        EXPECT_EQ(::pipe2(report, O_CLOEXEC), 0);
        std::fflush(stdout); // else the child's exit prints it on the terminal
        m_leader = ::fork();
        if (m_leader == 0) {
            ::setsid();
            const int terminal = ::open(m_name.c_str(), O_RDWR);
            ::ioctl(terminal, TIOCSCTTY, 0);
            const pid_t client = ::fork();
            if (client == 0) {
                ::dup2(terminal, STDIN_FILENO);
                ::dup2(terminal, STDOUT_FILENO);
                std::exit(used(what));
            }
            int status = 0;
            ::waitpid(client, &status, 0);
            [[maybe_unused]] const auto written = ::write(report[1], &status, sizeof status);
            ::pause(); // its exit would reset the terminal
        }
        int status = -1;
        EXPECT_EQ(::read(report[0], &status, sizeof status), ssize_t{sizeof status});
        ::close(report[0]);
        ::close(report[1]);
        return status;
    }

    termios modes() const
    {
        termios found{};
        ::tcgetattr(m_slave, &found);
        return found;
    }
    bool is_raw() const { return (modes().c_lflag & (ICANON | ECHO | ISIG)) == 0; }
    bool was_raw() { return shown().find("raw") != std::string::npos; }
    /// Everything written to the screen so far.
    const std::string& shown()
    {
        pollfd wait{m_master, POLLIN, 0};
        char bytes[4096];
        while (::poll(&wait, 1, 0) > 0) {
            const ssize_t size = ::read(m_master, bytes, sizeof bytes);
            if (size <= 0) {
                break;
            }
            m_shown.append(bytes, static_cast<std::size_t>(size));
        }
        return m_shown;
    }
    void set_size(unsigned short rows, unsigned short columns) const
    {
        const winsize cells{rows, columns, 0, 0};
        ::ioctl(m_master, TIOCSWINSZ, &cells);
    }

private:
    static int used(const std::function<void(RawTerminal&)>& what)
    {
        try {
            RawTerminal terminal(STDIN_FILENO, STDOUT_FILENO);
            terminal.enter();
            termios now{};
            ::tcgetattr(STDIN_FILENO, &now);
            const bool raw = terminal.is_raw() && (now.c_lflag & (ICANON | ISIG)) == 0 &&
                             (now.c_oflag & OPOST) == 0;
            [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, raw ? "raw" : "no", 3);
            what(terminal);
        } catch (const std::exception&) {
            return 3;
        }
        return 0;
    }

    int m_master, m_slave = -1;
    std::string m_name, m_shown;
    pid_t m_leader = -1;
};

bool same(const termios& a, const termios& b)
{
    return a.c_iflag == b.c_iflag && a.c_oflag == b.c_oflag && a.c_cflag == b.c_cflag &&
           a.c_lflag == b.c_lflag;
}

TEST(RawTerminal, IsGivenBackWhateverHappens)
{
    struct Case {
        const char* name;
        std::function<void(RawTerminal&)> what;
    };
    const Case cases[] = {
        {"leave", [](RawTerminal& terminal) { terminal.leave(); }},
        {"destructor", [](RawTerminal&) {}},
        {"exception", [](RawTerminal&) { throw std::runtime_error("x"); }},
        {"exit", [](RawTerminal&) { std::exit(1); }},
        {"abort", [](RawTerminal&) { std::abort(); }},
        {"segv", [](RawTerminal&) { ::raise(SIGSEGV); }},
    };
    for (const Case& each : cases) {
        Login login;
        const termios before = login.modes();
        const int status = login.status_of(each.what);
        EXPECT_TRUE(login.was_raw()) << each.name;
        EXPECT_TRUE(same(login.modes(), before)) << each.name;
        EXPECT_EQ(WIFSIGNALED(status),
                  std::string(each.name) == "abort" || std::string(each.name) == "segv")
            << each.name;
    }
}

TEST(RawTerminal, StaysRawOnlyWhenKilled)
{
    Login login;
    login.status_of([](RawTerminal&) { ::raise(SIGKILL); });
    EXPECT_TRUE(login.is_raw()); // proves that the test above can fail
}

TEST(RawTerminal, SwitchesOffWhatTheProgramSwitchedOn)
{
    Login login;
    login.status_of([](RawTerminal& terminal) { terminal.watch("\x1b[?1049h\x1b[?25l"); });
    EXPECT_NE(login.shown().find("\x1b[?25h\x1b[?1049l"), std::string::npos);
}

TEST(RawTerminal, SwitchesOffWhatTheProgramSwitchedOnWhateverHappens)
{
    const std::function<void()> ends[] = {[] {}, [] { std::exit(1); }, [] { std::abort(); },
                                          [] { ::raise(SIGSEGV); },
                                          [] { throw std::runtime_error("x"); }};
    for (const auto& end : ends) {
        Login login;
        login.status_of([&end](RawTerminal& terminal) {
            terminal.watch("\x1b[>5u\x1b(0\x1b[?2004h");
            terminal.watch("\x1b[?2004l");
            end();
        });
        EXPECT_TRUE(login.shown().ends_with("raw\x1b\\\x1b[<u\x1b(B")) << login.shown();
    }
}

TEST(RawTerminal, EndsAStringInWhichTheOutputEnds)
{
    for (const char* const begin : {"\x1b]0;a title", "\x1bPq#0;2;0", "\x1b_Gf=24;AAAA\x1b"}) {
        Login login;
        login.status_of([&](RawTerminal& terminal) { terminal.watch(begin); });
        EXPECT_EQ(login.shown(), "raw\x1b\\") << begin;
    }
    Login login;
    login.status_of([](RawTerminal& terminal) { terminal.watch("\x1b]0;a title\x07text"); });
    EXPECT_EQ(login.shown(), "raw");
}

TEST(RawTerminal, ReadsKeysOfItsOwnPlainAndUnseen)
{
    Login login;
    login.status_of([](RawTerminal& terminal) {
        terminal.watch("\x1b[>5u\x1b[?1004h");
        terminal.begin_own_keys();
        (void)!::write(STDOUT_FILENO, "own", 3);
        terminal.end_own_keys();
        (void)!::write(STDOUT_FILENO, "program", 7);
    });
    EXPECT_EQ(login.shown(), "raw\x1b\\\x1b[?1004l\x1b[=0uown\x1b[?1004h\x1b[=5uprogram"
                             "\x1b\\\x1b[?1004l\x1b[<u");

    Login cooked;
    const termios before = cooked.modes();
    cooked.status_of([](RawTerminal& terminal) {
        terminal.leave();
        terminal.begin_own_keys();
        termios now{};
        ::tcgetattr(STDIN_FILENO, &now);
        const bool right = (now.c_lflag & (ICANON | ECHO)) == 0 && (now.c_lflag & ISIG) != 0 &&
                           (now.c_oflag & OPOST) != 0;
        (void)!::write(STDOUT_FILENO, right ? "yes" : "no", right ? 3 : 2);
        ::abort();
    });
    EXPECT_EQ(cooked.shown(), "rawyes");
    EXPECT_TRUE(same(cooked.modes(), before));
}

TEST(RawTerminal, IsEnteredAgainAfterAStop)
{
    Login login;
    login.status_of([](RawTerminal& terminal) {
        termios cooked{};
        ::tcgetattr(STDIN_FILENO, &cooked);
        cooked.c_lflag |= ICANON | ECHO | ISIG; // as a shell does when it stops a job
        ::tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
        terminal.continued();
        termios now{};
        ::tcgetattr(STDIN_FILENO, &now);
        const bool raw = (now.c_lflag & (ICANON | ECHO | ISIG)) == 0;
        [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, raw ? "again" : "cooked", 5);
    });
    EXPECT_NE(login.shown().find("again"), std::string::npos);
    EXPECT_FALSE(login.is_raw());
}

TEST(RawTerminal, KnowsItsSize)
{
    Login login;
    login.set_size(33, 111);
    login.status_of([](RawTerminal& terminal) {
        const std::string text = terminal.size() == TerminalSize{33, 111} ? "right" : "wrong";
        [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, text.data(), text.size());
    });
    EXPECT_NE(login.shown().find("right"), std::string::npos);
}

TEST(RawTerminal, ThatIsNoneIsLeftAlone)
{
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    RawTerminal terminal(null, null);
    terminal.enter();
    EXPECT_FALSE(terminal.is_raw());
    EXPECT_FALSE(terminal.size());
    ::close(null);
}

} // namespace
} // namespace gpuq::cli
