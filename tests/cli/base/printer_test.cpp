// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/printer.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// Two pipes that stand in for stdout and stderr.
struct Streams {
    Streams()
    {
        EXPECT_EQ(::pipe(out.data()), 0);
        EXPECT_EQ(::pipe(err.data()), 0);
    }
    ~Streams()
    {
        for (const int descriptor : {out[0], out[1], err[0], err[1]}) {
            ::close(descriptor);
        }
    }
    static std::string read(int descriptor)
    {
        std::string text(4096, '\0');
        const ssize_t count = ::read(descriptor, text.data(), text.size());
        text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
        return text;
    }
    std::array<int, 2> out{-1, -1};
    std::array<int, 2> err{-1, -1};
};

void write_all(Printer& printer)
{
    while (!printer.empty()) {
        ASSERT_EQ(printer.write_some(), 0);
    }
}

TEST(Printer, WritesEachByteOnceWhenAPieceComesAgain)
{
    Streams streams;
    Printer printer(streams.out[1], streams.err[1]);
    EXPECT_EQ(printer.take(Stream::out, 0, "abc"), 0u);
    EXPECT_EQ(printer.take(Stream::out, 1, "bcde"), 0u);
    EXPECT_EQ(printer.take(Stream::out, 0, "abcde"), 0u);
    EXPECT_EQ(printer.take(Stream::err, 0, "E"), 0u);
    write_all(printer);
    EXPECT_EQ(Streams::read(streams.out[0]), "abcde");
    EXPECT_EQ(Streams::read(streams.err[0]), "E");
    EXPECT_EQ(printer.wanted(Stream::out), 5u);
    EXPECT_EQ(printer.wanted(Stream::err), 1u);
}

TEST(Printer, TellsHowManyBytesWillNeverCome)
{
    Streams streams;
    Printer printer(streams.out[1], streams.err[1]);
    printer.take(Stream::out, 0, "abc");
    EXPECT_EQ(printer.take(Stream::out, 10, "xyz"), 7u);
    write_all(printer);
    EXPECT_EQ(Streams::read(streams.out[0]), "abcxyz");
    EXPECT_EQ(printer.wanted(Stream::out), 13u);
}

TEST(Printer, BeginsWhereItIsTold)
{
    Streams streams;
    Printer printer(streams.out[1], streams.err[1]);
    printer.begin_at(Stream::out, 3);
    printer.begin_at(Stream::err, wire::k_from_now);
    EXPECT_EQ(printer.take(Stream::out, 0, "abcdef"), 0u);
    EXPECT_EQ(printer.take(Stream::err, 1000, "x"), 0u);
    EXPECT_EQ(printer.take(Stream::err, 1001, "y"), 0u);
    EXPECT_EQ(printer.shown(Stream::out), 3u);
    write_all(printer);
    EXPECT_EQ(Streams::read(streams.out[0]), "def");
    EXPECT_EQ(Streams::read(streams.err[0]), "xy");
    EXPECT_EQ(printer.shown(Stream::out), 6u);
    EXPECT_EQ(printer.shown(Stream::err), 1002u);
}

TEST(Printer, ShowsWhatIsNoPartOfTheOutput)
{
    Streams streams;
    Printer printer(streams.out[1], streams.err[1]);
    printer.show("screen");
    printer.take(Stream::out, 0, "abc");
    write_all(printer);
    EXPECT_EQ(Streams::read(streams.out[0]), "screenabc");
    EXPECT_EQ(printer.shown(Stream::out), 3u);
}

TEST(Printer, ReportsAReaderThatWentAway)
{
    std::signal(SIGPIPE, SIG_IGN);
    Streams streams;
    Printer printer(streams.out[1], streams.err[1]);
    ::close(std::exchange(streams.out[0], ::dup(STDIN_FILENO)));
    printer.take(Stream::out, 0, "abc");
    EXPECT_EQ(printer.write_some(), EPIPE);
}

TEST(Printer, KnowsWhetherALineIsOpen)
{
    Streams streams;
    Printer printer(streams.out[1], streams.err[1]);
    EXPECT_TRUE(printer.at_line_start());
    printer.take(Stream::out, 0, "50 %");
    write_all(printer);
    EXPECT_FALSE(printer.at_line_start());
    printer.take(Stream::out, 4, "\n");
    write_all(printer);
    EXPECT_TRUE(printer.at_line_start());
}

TEST(Printer, AsksForNoMoreWhileMuchWaits)
{
    Streams streams;
    Printer printer(streams.out[1], streams.err[1]);
    EXPECT_FALSE(printer.full());
    printer.take(Stream::out, 0, std::string(3 << 20, 'x'));
    EXPECT_TRUE(printer.full());
}

} // namespace
} // namespace gpuq::cli
