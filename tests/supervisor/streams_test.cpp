// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/log_times.h"
#include "supervisor/stage.h"

#include <array>
#include <sstream>
#include <vector>

namespace gpuq::supervisor {
namespace {

TEST(Streams, ArriveApartAndByteForByte)
{
    Stage stage = Stage::shell(R"(printf 'a\000b\377\n'; printf 'e\000\376' >&2)");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out, std::string("a\0b\xff\n", 5));
    EXPECT_EQ(client.err, std::string("e\0\xfe", 3));
    EXPECT_EQ(client.ended->out, 5U);
    EXPECT_EQ(client.ended->err, 3U);
    EXPECT_EQ(stage.wait(), 0);
    EXPECT_EQ(contents(stage.link_file("out.log")), client.out);
    EXPECT_EQ(contents(stage.link_file("err.log")), client.err);
}

TEST(Streams, SayWhoIsThereBeforeAnythingElse)
{
    Stage stage = Stage::shell("echo hi");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(*client.hello, (wire::Hello{wire::k_version, stage.run.key.text(), 1, 42, "n1"}));
    EXPECT_GT(client.started.value().pid, 1);
}

TEST(Streams, KeepTheProgramsOrderAlsoOnDisk)
{
    // Each stream waits until the other one was read: the order is the program's.
    Stage stage({"/usr/bin/python3", "-c",
                 "import array, fcntl, os, termios, time\n"
                 "def say(fd, text):\n"
                 "    os.write(fd, text.encode())\n"
                 "    left = array.array('i', [1])\n"
                 "    while left[0]:\n"
                 "        time.sleep(0.001); fcntl.ioctl(fd, termios.FIONREAD, left)\n"
                 "for i in range(20):\n"
                 "    say(1, 'o%d\\n' % i); say(2, 'e%d\\n' % i)\n"});
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    std::string wanted, order;
    for (int i = 0; i < 20; ++i) {
        const std::string number = std::to_string(i);
        wanted += "oo" + number + "\nee" + number + "\n";
        order += "o " + std::to_string(number.size() + 2) + "\n";
        order += i < 19 ? "e " + std::to_string(number.size() + 2) + "\n" : "";
    }
    EXPECT_EQ(client.interleaved, wanted);
    stage.wait();
    EXPECT_EQ(contents(stage.link_file("order")), order);
}

TEST(Streams, TheTimesOfOutputAreRecorded)
{
    Stage stage = Stage::shell("echo one; sleep 1.3; echo two >&2; sleep 1.3; echo three");
    Client client = stage.begin();
    ASSERT_TRUE(client.reads_to_the_end());
    stage.wait();
    std::istringstream file(contents(stage.link_file("times")));
    std::vector<LogTime> times;
    for (std::string line; std::getline(file, line);) {
        const auto time = parse_log_time(line);
        ASSERT_TRUE(time) << line;
        times.push_back(*time);
    }
    ASSERT_EQ(times.size(), 3U);
    using Sizes = std::array<std::uint64_t, 2>;
    EXPECT_EQ(times[0].sizes, (Sizes{4, 0}));
    EXPECT_EQ(times[1].sizes, (Sizes{4, 4}));
    EXPECT_EQ(times[2].sizes, (Sizes{10, 4}));
    EXPECT_GE(times[1].at - times[0].at, 1s);
    EXPECT_GE(times[2].at - times[1].at, 1s);
}

TEST(Streams, OneLineOf200MegabytesIsWhole)
{
    Stage stage = Stage::shell("head -c 200000000 /dev/zero");
    Client client = stage.begin();
    client.keep_output = false;
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_FALSE(client.overlapped);
    EXPECT_EQ(client.out_at, 200'000'000U);
    EXPECT_EQ(client.ended->out, 200'000'000U);
    EXPECT_EQ(stage.wait(), 0);
    EXPECT_EQ(std::filesystem::file_size(stage.link_file("out.log")), 200'000'000U);
    EXPECT_EQ(contents(stage.link_file("order")), "");
}

TEST(Streams, AClientThatComesLateGetsAllFromItsOffset)
{
    Stage stage = Stage::shell("head -c 3000000 /dev/zero | tr '\\0' x; sleep 0.05; echo err >&2;"
                               "sleep 0.05; echo tail;"
                               "read line");
    stage.run.request.input = Input::terminal;
    Client first = stage.begin();
    ASSERT_TRUE(first.reads_until([&] { return first.out.ends_with("tail\n"); }));
    Client late = stage.attach();
    Client later = stage.attach(wire::Role::viewer, 2'999'999, 2);
    ASSERT_TRUE(late.reads_until([&] { return late.out.size() == first.out.size(); }));
    ASSERT_TRUE(later.reads_until([&] { return later.out_at == first.out.size(); }));
    EXPECT_EQ(late.interleaved, first.interleaved);
    EXPECT_EQ(later.interleaved, "oxer\notail\n");
    first.send(wire::Stdin{0, "\n"});
    EXPECT_TRUE(late.reads_to_the_end());
    EXPECT_TRUE(later.reads_to_the_end());
    EXPECT_TRUE(first.reads_to_the_end());
}

TEST(Streams, AStoppedClientDelaysNobody)
{
    Stage stage = Stage::shell("head -c 20000000 /dev/zero");
    stage.options.patience.stalled = 30'000ms;
    Client stopped = stage.begin();
    Client reader = stage.attach();
    reader.keep_output = false;
    ASSERT_TRUE(reader.reads_until([&] { return reader.out_at == 20'000'000; }));
    EXPECT_TRUE(reader.reads_to_the_end());
    // The other client, when it reads again, has lost nothing.
    ASSERT_TRUE(stopped.reads_to_the_end());
    EXPECT_EQ(stopped.out.size(), 20'000'000U);
    EXPECT_FALSE(stopped.overlapped);
}

TEST(Streams, AreSentNoFurtherThanTheClientHasRoom)
{
    Stage stage = Stage::shell("read line; head -c 3000000 /dev/zero");
    stage.run.request.input = Input::terminal;
    stage.options.patience.stalled = 30'000ms;
    Client client = stage.begin();
    client.send(wire::OutputTaken{0, 100'000});
    client.send(wire::Stdin{0, "\n"});
    ASSERT_TRUE(eventually([&] {
        client.read_more();
        return contents(stage.link_file("out.log")).size() == 3'000'000;
    }));
    ASSERT_TRUE(client.reads_until([&] { return client.out.size() >= 100'000; }));
    client.read_more();
    EXPECT_EQ(client.out.size(), 100'000U);
    client.send(wire::OutputTaken{client.out.size(), 1 << 30});
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.out.size(), 3'000'000U);
}

TEST(Streams, AClientWithoutRoomAtTheEndIsLeft)
{
    Stage stage = Stage::shell("read line; head -c 3000000 /dev/zero; exit 7");
    stage.run.request.input = Input::terminal;
    Client client = stage.begin();
    client.send(wire::OutputTaken{0, 1000});
    client.send(wire::Stdin{0, "\n"});
    EXPECT_EQ(stage.wait(), 7);
    client.read_more();
    EXPECT_FALSE(client.ended);
    EXPECT_EQ(client.out.size(), 1000U);
}

TEST(Streams, AClientThatTakesNothingAtTheEndIsLeft)
{
    Stage stage = Stage::shell("head -c 2000000 /dev/zero");
    Client silent = stage.begin();
    EXPECT_EQ(stage.wait(), 0);
    EXPECT_EQ(std::filesystem::file_size(stage.link_file("out.log")), 2'000'000U);
}

TEST(Streams, ASlowClientThatKeepsReadingGetsEverything)
{
    Stage stage = Stage::shell("head -c 6000000 /dev/zero");
    Client slow = stage.begin();
    ASSERT_TRUE(eventually([&] { return stage.event(Event::Kind::ended).has_value(); }));
    // 64 KiB every 10 ms or so: far behind the end of the program.
    ASSERT_TRUE(slow.reads_until([&] {
        ::poll(nullptr, 0, 1);
        return slow.ended.has_value();
    }));
    EXPECT_EQ(slow.out.size(), 6'000'000U);
}

TEST(Streams, ACloseReaderDoesNotEndTheRun)
{
    Stage stage = Stage::shell("head -c 2000000 /dev/zero; exit 7");
    Client client = stage.begin();
    client.close_output();
    EXPECT_EQ(stage.wait(), 7);
    EXPECT_EQ(std::filesystem::file_size(stage.link_file("out.log")), 2'000'000U);
}

TEST(Streams, HandOverFromOneClientToTheNextLosesAndDoublesNothing)
{
    Stage stage({"/usr/bin/python3", "-c",
                 "import sys\n"
                 "for i in range(200000):\n"
                 "    print(i)\n"
                 "    if i % 1000 == 0: print(i, file=sys.stderr, flush=True)\n"});
    Client first = stage.begin();
    ASSERT_TRUE(first.reads_until([&] { return first.out.size() > 100'000; }));
    const std::string seen = first.out, seen_err = first.err;
    Client second = stage.attach(wire::Role::owner, first.out_at, first.err_at);
    first.close_all();
    ASSERT_TRUE(second.reads_to_the_end());
    std::string wanted, wanted_err;
    for (int i = 0; i < 200000; ++i) {
        wanted += std::to_string(i) + "\n";
        wanted_err += i % 1000 == 0 ? std::to_string(i) + "\n" : "";
    }
    EXPECT_TRUE(seen + second.out == wanted);
    EXPECT_EQ(seen_err + second.err, wanted_err);
}

TEST(Streams, GarbageEndsAConnectionAndNothingElse)
{
    Stage stage = Stage::shell("read line; echo $line");
    stage.run.request.input = Input::pipe;
    Client owner = stage.begin();
    Client garbage(stage.connect());
    garbage.send_bytes("GET / HTTP/1.1\r\n\r\n");
    EXPECT_FALSE(garbage.reads_until([] { return false; }));
    Client impolite(stage.connect());
    impolite.send(wire::Stop{"nobody"});
    EXPECT_FALSE(impolite.reads_until([] { return false; }));
    owner.send(wire::Stdin{0, "fine\n"});
    ASSERT_TRUE(owner.reads_to_the_end());
    EXPECT_EQ(owner.out, "fine\n");
}

TEST(Streams, EachBatchEndsWithALineEnd)
{
    // slurmstepd would hold back an unfinished line.
    Stage stage = Stage::shell("printf unfinished; read line");
    stage.run.request.input = Input::terminal;
    Client client = stage.begin();
    std::string bytes;
    ASSERT_TRUE(eventually([&] {
        char piece[4096];
        const ssize_t size = ::read(client.from(), piece, sizeof piece);
        bytes.append(piece, size > 0 ? static_cast<std::size_t>(size) : 0);
        return bytes.find("unfinished") != std::string::npos;
    }));
    EXPECT_EQ(bytes.back(), '\n');
    client.send(wire::Stop{"test"});
    EXPECT_TRUE(client.reads_to_the_end());
}

} // namespace
} // namespace gpuq::supervisor
