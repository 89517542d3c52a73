// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stage.h"

namespace gpuq::supervisor {
namespace {

constexpr TerminalSize k_size{30, 90};

/// A run on a terminal, as seen by an interactive user.
Stage on_a_terminal(std::vector<std::string> program)
{
    return Stage(std::move(program), Pty{k_size});
}

/// An interactive client on a connection other than the step's own.
Client sit_down(Stage& stage, std::uint64_t client, TerminalSize size, bool redraw = true)
{
    Client person = stage.attach(wire::Role::viewer, wire::k_from_now, wire::k_from_now);
    person.send(wire::Terminal{client, size, redraw});
    return person;
}

TEST(Terminal, IsTheProgramsOwnAndCarriesBothStreams)
{
    Stage stage = on_a_terminal({"/bin/sh", "-c",
                                 "test -t 0 && test -t 1 && test -t 2 && stty size && echo err >&2;"
                                 "ps -o tty= -p $$ >/dev/null; : < /dev/tty && echo controlled;"
                                 "echo $TERM; echo ${COLUMNS-none}; exit 7"});
    stage.run.request.setup.env = {{"TERM", "vt220"}};
    ::setenv("COLUMNS", "13", 1);
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, "30 90\r\nerr\r\ncontrolled\r\nvt220\r\nnone\r\n");
    EXPECT_EQ(client.err, "");
    EXPECT_EQ(stage.wait(), 7);
    EXPECT_EQ(contents(stage.link_file("out.log")), client.out);
}

TEST(Terminal, TakesKeysFromWhoeverSitsAtOne)
{
    Stage stage = on_a_terminal({"/bin/sh", "-c", "read a; read b; read c; echo $a $b $c"});
    Client first = stage.begin();
    first.send(wire::Terminal{1, k_size, false});
    first.send(wire::Stdin{0, "one\r"});
    ASSERT_TRUE(first.reads_until([&] { return first.out.ends_with("one\r\n"); }));
    Client second = sit_down(stage, 2, k_size);
    second.send(wire::Stdin{0, "two\r"});
    ASSERT_TRUE(first.reads_until([&] { return first.out.ends_with("two\r\n"); }));
    // The first client has reconnected and resends all input that it does not know to be received.
    Client again = stage.attach(wire::Role::owner, first.out_at, 0);
    again.send(wire::Terminal{1, k_size, false});
    again.send(wire::Stdin{0, "one\r"});
    again.send(wire::Stdin{4, "three\r"});
    ASSERT_TRUE(again.reads_to_the_end());
    EXPECT_TRUE(again.out.ends_with("one two three\r\n")) << again.out;
    EXPECT_GE(again.taken->offset, 4U); // acknowledged in larger amounts, not per key
}

TEST(Terminal, DoesNotTakeKeysFromALooker)
{
    Stage stage = on_a_terminal({"/bin/sh", "-c", "read a; echo got $a"});
    Client first = stage.begin();
    Client looker = stage.attach();
    looker.send(wire::Stdin{0, "no\r"});
    ASSERT_TRUE(looker.reads_until([&] { return looker.started.has_value(); }));
    first.send(wire::Terminal{1, k_size, false});
    first.send(wire::Stdin{0, "yes\r"});
    ASSERT_TRUE(first.reads_to_the_end());
    EXPECT_EQ(first.out, "yes\r\ngot yes\r\n");
}

TEST(Terminal, PassesCtrlCToTheForeground)
{
    Stage stage = on_a_terminal({"/bin/sh", "-c",
                                 "trap 'echo caught; exit 3' INT; echo up; "
                                 "while :; do sleep 0.05; done"});
    Client client = stage.begin();
    client.send(wire::Terminal{1, k_size, false});
    ASSERT_TRUE(client.reads_until([&] { return client.out.ends_with("up\r\n"); }));
    client.send(wire::Stdin{0, "\x03"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.out.ends_with("caught\r\n")) << client.out;
    EXPECT_EQ(stage.wait(), 3);
}

constexpr const char* k_print_sizes =
    "import os,signal,sys\n"
    "def tell(*_): os.write(1, b'%d %d\\n' % tuple(reversed(os.get_terminal_size())))\n"
    "signal.signal(signal.SIGWINCH, tell)\n"
    "tell()\n"
    "for line in sys.stdin: break\n";

TEST(Terminal, HasTheSizeOfWhoCameOrChangedLast)
{
    Stage stage = on_a_terminal({"/usr/bin/python3", "-c", k_print_sizes});
    Client first = stage.begin();
    first.send(wire::Terminal{1, k_size, false});
    ASSERT_TRUE(first.reads_until([&] { return first.out == "30 90\r\n"; })) << first.out;
    first.send(wire::Terminal{1, {40, 100}, false});
    ASSERT_TRUE(first.reads_until([&] { return first.out.ends_with("40 100\r\n"); }));
    Client second = sit_down(stage, 2, {20, 50});
    ASSERT_TRUE(first.reads_until([&] { return first.out.ends_with("19 50\r\n20 50\r\n"); }));
    second.send(wire::Bye{});
    ASSERT_TRUE(first.reads_until([&] { return first.out.ends_with("40 100\r\n"); })) << first.out;
    first.send(wire::Stdin{0, "\r"});
    EXPECT_TRUE(first.reads_to_the_end());
}

TEST(Terminal, ShowsWhoComesTheLastLines)
{
    Stage stage = on_a_terminal(
        {"/bin/sh", "-c", "seq 100; printf '\\033[31mred\\033[m\\033[?2004h$ '; read a; echo $a"});
    Client first = stage.begin();
    ASSERT_TRUE(first.reads_until([&] { return first.out.ends_with("$ "); }));
    Client second = sit_down(stage, 2, {4, 80});
    ASSERT_TRUE(second.reads_until([&] { return second.screen.has_value(); }));
    EXPECT_EQ(*second.screen, "99\r\n100\r\nred$ \x1b[?2004h");
    EXPECT_EQ(second.out, "");
    second.send(wire::Stdin{0, "x\r"});
    ASSERT_TRUE(second.reads_to_the_end());
    EXPECT_EQ(second.out, "x\r\nx\r\n");
}

TEST(Terminal, HasAFullScreenProgramDrawAnew)
{
    Stage stage =
        on_a_terminal({"/usr/bin/python3", "-c",
                       "import signal,sys,os\n"
                       "def draw(*_): os.write(1, b'drawn %d\\n' % os.get_terminal_size().lines)\n"
                       "signal.signal(signal.SIGWINCH, draw)\n"
                       "print('\\033[?1049h\\033[?1hfull', flush=True)\n"
                       "for line in sys.stdin: break\n"});
    Client first = stage.begin();
    ASSERT_TRUE(first.reads_until([&] { return first.out.ends_with("full\r\n"); }));
    Client second = sit_down(stage, 2, k_size);
    ASSERT_TRUE(second.reads_until([&] { return second.out.ends_with("drawn 30\r\n"); }));
    EXPECT_EQ(*second.screen, "\x1b[?1h\x1b[?1049h\x1b[H\x1b[2J");
    EXPECT_EQ(second.out, "drawn 29\r\ndrawn 30\r\n");
    second.send(wire::Stdin{0, "\r"});
    EXPECT_TRUE(second.reads_to_the_end());
}

TEST(Terminal, TakeTellsTheOthersToLeave)
{
    Stage stage = on_a_terminal({"/bin/sh", "-c", "read a"});
    Client first = stage.begin();
    first.send(wire::Terminal{1, k_size, false});
    ASSERT_TRUE(first.reads_until([&] { return first.started.has_value(); }));
    Client second = sit_down(stage, 2, k_size);
    second.send(wire::Take{"ada@login2"});
    ASSERT_TRUE(first.reads_until([&] { return first.taken_by == "ada@login2"; }));
    first.send(wire::Stdin{0, "no longer\r"});
    second.send(wire::Stdin{0, "\r"});
    ASSERT_TRUE(second.reads_to_the_end());
    EXPECT_EQ(second.taken_by, std::nullopt);
    EXPECT_EQ(second.out, "\r\n");
}

TEST(Terminal, OutlivesEverybody)
{
    Stage stage = on_a_terminal({"/bin/sh", "-c", "read a; echo got $a; sleep 0.3; exit 4"});
    Client first = stage.begin();
    first.send(wire::Terminal{1, k_size, false});
    ASSERT_TRUE(first.reads_until([&] { return first.started.has_value(); }));
    first.close_all();
    Client second = sit_down(stage, 2, k_size);
    second.send(wire::Stdin{0, "it\r"});
    ASSERT_TRUE(second.reads_to_the_end());
    EXPECT_TRUE(second.out.ends_with("got it\r\n"));
    EXPECT_EQ(stage.wait(), 4);
}

TEST(Terminal, APasteOf100KilobytesIsWhole)
{
    Stage stage =
        on_a_terminal({"/bin/sh", "-c", "stty raw -echo; echo up; head -c 100000 | md5sum"});
    Client client = stage.begin();
    client.send(wire::Terminal{1, k_size, false});
    ASSERT_TRUE(client.reads_until([&] { return client.out.find("up") != std::string::npos; }));
    std::string text;
    while (text.size() < 100'000) {
        text += "größe " + std::to_string(text.size()) + "\r";
    }
    text.resize(100'000);
    put(stage.root() / "pasted", text);
    for (std::size_t at = 0; at < text.size(); at += 4096) {
        client.send(wire::Stdin{at, text.substr(at, 4096)});
    }
    ASSERT_TRUE(client.reads_to_the_end());
    const std::string command = "md5sum < " + (stage.root() / "pasted").string();
    std::FILE* sum = ::popen(command.c_str(), "r");
    char line[64] = "";
    ASSERT_NE(std::fgets(line, 33, sum), nullptr);
    ::pclose(sum);
    EXPECT_NE(client.out.find(line), std::string::npos) << client.out;
}

TEST(Terminal, ThatIsStoppedEndsAShellThatIgnoresTerm)
{
    Stage stage({"/bin/bash", "--norc", "-i"}, Pty{k_size, /*shell=*/true});
    Client client = stage.begin();
    client.send(wire::Terminal{1, k_size, false});
    ASSERT_TRUE(client.reads_until(
        [&] { return client.out.ends_with("$ ") || client.out.ends_with("# "); }));
    client.send(wire::Stop{"ada@login1"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::stopped);
    EXPECT_EQ(stage.wait(), 123);
}

TEST(Terminal, ThatIsStoppedLeavesAProgramTheTimeToSave)
{
    Stage stage = on_a_terminal(
        {"/bin/sh", "-c", "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"});
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_until([&] { return client.out.ends_with("up\r\n"); }));
    client.send(wire::Stop{"ada@login1"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.out.ends_with("saved\r\n")) << client.out;
}

TEST(Terminal, HasNoWarningsBetweenWhatIsDrawn)
{
    Stage stage = on_a_terminal({"/bin/sh", "-c", "read a"});
    stage.run.request.walltime = std::chrono::minutes{16};
    stage.options.ends_at =
        std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now()) +
        15min + 300ms;
    Client client = stage.begin();
    client.send(wire::Terminal{1, k_size, false});
    EXPECT_EQ(stage.awaited(Event::Kind::warned).detail, "15 minutes left");
    client.send(wire::Stdin{0, "\r"});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_TRUE(client.notes.empty());
}

TEST(Shell, ThatNobodyComesToEnds)
{
    Stage stage({"/bin/sh", "-c", "sleep 60"}, Pty{k_size, /*shell=*/true});
    stage.options.patience.unclaimed_shell = 200ms;
    Client client = stage.begin();
    client.close_all();
    EXPECT_EQ(stage.wait(), 123);
    const Event ended = stage.awaited(Event::Kind::ended);
    EXPECT_EQ(ended.cause, Cause::stopped);
    EXPECT_NE(ended.detail->find("no client attached to the shell"), std::string::npos);
}

TEST(Shell, ThatAllHaveLeftEndsWhenItDoesNothing)
{
    Stage stage({"/bin/sh", "-c", "echo up; sleep 60"}, Pty{k_size, /*shell=*/true});
    stage.options.patience.idle_shell = 300ms;
    Client client = stage.begin();
    client.send(wire::Terminal{1, k_size, false});
    ASSERT_TRUE(client.reads_until([&] { return client.out == "up\r\n"; }));
    client.send(wire::Bye{});
    client.close_all();
    EXPECT_EQ(stage.wait(), 123);
    EXPECT_NE(stage.awaited(Event::Kind::ended).detail->find("the shell was unattended"),
              std::string::npos);
}

TEST(Shell, ThatSomebodySitsAtStays)
{
    Stage stage({"/bin/sh", "-c", "sleep 0.6; exit 5"}, Pty{k_size, /*shell=*/true});
    stage.options.patience.idle_shell = 100ms;
    stage.options.patience.unclaimed_shell = 100ms;
    Client client = stage.begin();
    client.send(wire::Terminal{1, k_size, false});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(stage.wait(), 5);
}

} // namespace
} // namespace gpuq::supervisor
