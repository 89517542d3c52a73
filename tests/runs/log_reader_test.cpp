// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/log_reader.h"

#include "core/layout.h"
#include "fakes/fake_clock.h"
#include "fakes/memory_store.h"
#include "runs/records/journal.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using log::Cut;
using log::End;
using log::Gap;
using log::Item;
using log::Output;
using log::Wait;
using ::testing::ElementsAre;

Output out(const std::string& bytes)
{
    return {Stream::out, bytes};
}

Output err(const std::string& bytes)
{
    return {Stream::err, bytes};
}

class ReadLog : public ::testing::Test {
protected:
    static constexpr LinkNumber k_link{1};

    fakes::MemoryStore m_store;
    fakes::FakeClock m_clock;
    RunKey m_key = RunKey::make(m_clock.now(), {1, 2, 3, 4, 5, 6, 7, 8});
    LogReader m_reader{m_store, m_key};

    std::string path(Stream stream) const { return layout::log(m_key, k_link, stream); }
    std::string order_path() const { return layout::order(m_key, k_link); }
    void out_log(const std::string& bytes) { m_store.append(path(Stream::out), bytes); }
    void err_log(const std::string& bytes) { m_store.append(path(Stream::err), bytes); }
    void order(const std::string& lines) { m_store.append(order_path(), lines); }

    void lost(Stream stream, std::uint64_t from, std::uint64_t to)
    {
        Event event;
        event.kind = Event::Kind::log_lost;
        event.at = m_clock.now();
        event.stream = stream;
        event.from = from;
        event.to = to;
        m_store.append(layout::journal(m_key, k_link), to_line(event));
    }

    Item next(Writer writer) { return m_reader.next(writer, m_clock.steady()).value(); }

    /// All items up to and including the next Wait or End. Adjacent items of a stream are joined.
    std::vector<Item> read(Writer writer)
    {
        std::vector<Item> items;
        while (true) {
            Item item = next(writer);
            const bool is_last =
                std::holds_alternative<Wait>(item) || std::holds_alternative<End>(item);
            auto* piece = std::get_if<Output>(&item);
            auto* before = items.empty() ? nullptr : std::get_if<Output>(&items.back());
            if (piece && before && before->stream == piece->stream) {
                before->bytes += piece->bytes;
            } else {
                items.push_back(item);
            }
            if (is_last) {
                return items;
            }
        }
    }
};

TEST_F(ReadLog, IsEmptyBeforeTheFirstByte)
{
    EXPECT_THAT(read(Writer::alive), ElementsAre(Wait{}));
    EXPECT_THAT(read(Writer::gone), ElementsAre(End{}));
}

TEST_F(ReadLog, GivesTheStreamsAsTheProgramWroteThem)
{
    out_log("one\nthree\n");
    err_log("two\nfour");
    order("o 4\ne 4\no 6\n");
    EXPECT_THAT(read(Writer::gone),
                ElementsAre(out("one\n"), err("two\n"), out("three\n"), err("four"), End{}));
}

TEST_F(ReadLog, FollowsAGrowingLog)
{
    out_log("a");
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("a"), Wait{}));
    EXPECT_THAT(read(Writer::alive), ElementsAre(Wait{}));
    out_log("b");
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("b"), Wait{}));
    out_log("c");
    order("o 3\n");
    err_log("d");
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("c"), err("d"), Wait{}));
    order("e 1\n");
    out_log("e");
    EXPECT_THAT(read(Writer::gone), ElementsAre(out("e"), End{}));
}

TEST_F(ReadLog, PassesBytesOfAnyKind)
{
    const std::string bytes("\0\xff\r\n\x1b[2J\0", 9);
    out_log(bytes);
    EXPECT_THAT(read(Writer::alive), ElementsAre(out(bytes), Wait{}));
}

TEST_F(ReadLog, IgnoresATornLineOfOrder)
{
    out_log("abc");
    order("o ");
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("abc"), Wait{}));
    order("3\n");
    err_log("x");
    EXPECT_THAT(read(Writer::gone), ElementsAre(err("x"), End{}));
}

TEST_F(ReadLog, PassesOverLinesThatMakeNoSense)
{
    out_log("abc");
    order("hello\n\no -1\nz 4\no 99999999999999999999999\no 1\n" + std::string(100'000, 'x') +
          "\no 2\n");
    EXPECT_THAT(read(Writer::gone), ElementsAre(out("abc"), End{}));
}

TEST_F(ReadLog, SurvivesSumsBeyondAllBounds)
{
    out_log("abc");
    order("o 18446744073709551615\no 18446744073709551615\n");
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("abc"), Wait{true}));
    m_clock.advance(LinkLog::k_patience);
    read(Writer::gone);
    m_clock.advance(LinkLog::k_patience);
    EXPECT_THAT(read(Writer::gone), ElementsAre(Gap{Stream::out, UINT64_MAX - 3}, End{}));
}

TEST_F(ReadLog, SkipsWhatWasLostAndSaysHowMuch)
{
    // The gap left by a full disk reads as zeros.
    out_log("abc" + std::string(5, '\0') + "xyz");
    lost(Stream::out, 3, 8);
    EXPECT_THAT(read(Writer::alive),
                ElementsAre(out("abc"), Gap{Stream::out, 5}, out("xyz"), Wait{}));
}

TEST_F(ReadLog, SkipsWhatWasLostAtTheEnd)
{
    out_log("abc");
    err_log("e");
    order("o 10\n");
    lost(Stream::out, 3, 10);
    lost(Stream::err, 1, 4);
    EXPECT_THAT(read(Writer::gone),
                ElementsAre(out("abc"), Gap{Stream::out, 7}, err("e"), Gap{Stream::err, 3}, End{}));
}

TEST_F(ReadLog, SaysOfALossAcrossSegmentsWhereItStood)
{
    out_log("ab");
    err_log("E");
    order("o 4\ne 1\n");
    lost(Stream::out, 2, 6);
    EXPECT_THAT(read(Writer::gone),
                ElementsAre(out("ab"), Gap{Stream::out, 2}, err("E"), Gap{Stream::out, 2}, End{}));
}

TEST_F(ReadLog, GivesNothingOutOfOrderWhenOrderIsStale)
{
    m_store.hold(order_path());
    err_log("first");
    order("e 5\n");
    out_log("second");
    EXPECT_THAT(read(Writer::alive), ElementsAre(Wait{true}));
    m_clock.advance(1s);
    m_store.release(order_path());
    EXPECT_THAT(read(Writer::alive), ElementsAre(err("first"), out("second"), Wait{}));
}

TEST_F(ReadLog, GivesStdoutFirstWhenOrderDoesNotCome)
{
    out_log("out");
    err_log("err");
    EXPECT_THAT(read(Writer::alive), ElementsAre(Wait{true}));
    m_clock.advance(LinkLog::k_patience);
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("out"), err("err"), Wait{}));
    // Late entries in `order` do not affect output already returned.
    order("e 3\no 3\n");
    err_log("more");
    EXPECT_THAT(read(Writer::gone), ElementsAre(err("more"), End{}));
}

TEST_F(ReadLog, WaitsForBytesThatOrderTellsOf)
{
    m_store.append(path(Stream::out), "a");
    m_store.hold(path(Stream::out));
    out_log("bc");
    order("o 3\n");
    err_log("x");
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("a"), Wait{true}));
    m_clock.advance(1h); // no time limit while the writer is alive
    EXPECT_THAT(read(Writer::alive), ElementsAre(Wait{true}));
    m_store.release(path(Stream::out));
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("bc"), err("x"), Wait{}));
}

TEST_F(ReadLog, CountsBytesThatNeverCameAsLost)
{
    out_log("a");
    order("o 3\n");
    err_log("x");
    EXPECT_THAT(read(Writer::gone), ElementsAre(out("a"), Wait{true}));
    m_clock.advance(LinkLog::k_patience);
    EXPECT_THAT(read(Writer::gone), ElementsAre(Gap{Stream::out, 2}, err("x"), End{}));
}

TEST_F(ReadLog, LooksTwiceAtAPageOfZeros)
{
    // NFS: the second page arrived before the first.
    out_log(std::string(4096, '\0') + "tail");
    EXPECT_THAT(read(Writer::alive), ElementsAre(Wait{true}));
    m_store.files[path(Stream::out)] = std::string(4096, 'p') + "tail";
    EXPECT_THAT(read(Writer::alive), ElementsAre(out(std::string(4096, 'p') + "tail"), Wait{}));
}

TEST_F(ReadLog, BelievesZerosAfterAMoment)
{
    const std::string zeros(100'000, '\0');
    out_log("a" + zeros);
    EXPECT_THAT(read(Writer::alive), ElementsAre(Wait{true}));
    m_clock.advance(LinkLog::k_settling);
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("a" + zeros), Wait{}));
    out_log(zeros);
    EXPECT_THAT(read(Writer::gone), ElementsAre(out(zeros), End{}));
}

TEST_F(ReadLog, NoticesAFileThatWasCut)
{
    out_log("abcdef");
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("abcdef"), Wait{}));
    m_store.files[path(Stream::out)] = "abc";
    EXPECT_THAT(read(Writer::alive), ElementsAre(Wait{})); // possibly only stale
    m_clock.advance(LinkLog::k_patience);
    EXPECT_THAT(read(Writer::alive), ElementsAre(Cut{Stream::out}, Wait{}));
    m_store.files[path(Stream::out)] = "abcdefgh";
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("gh"), Wait{}));
}

TEST_F(ReadLog, TellsOfAnUnreadableFileAndGoesOnAfterwards)
{
    out_log("a");
    m_store.unreadable.insert(path(Stream::out));
    EXPECT_EQ(m_reader.next(Writer::alive, m_clock.steady()).error().kind, Error::Kind::io);
    m_store.unreadable.clear();
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("a"), Wait{}));
}

TEST_F(ReadLog, GoesThroughTheLinksInOrder)
{
    out_log("first\n");
    EXPECT_THAT(read(Writer::alive), ElementsAre(out("first\n"), Wait{}));
    err_log("bye\n");
    m_store.append(layout::log(m_key, LinkNumber{2}, Stream::out), "second\n");
    m_store.append(layout::log(m_key, LinkNumber{3}, Stream::out), "third\n");
    // The `order` of link 1 was incomplete; output is not returned twice.
    EXPECT_THAT(read(Writer::alive), ElementsAre(err("bye\n"), out("second\nthird\n"), Wait{}));
    EXPECT_THAT(read(Writer::gone), ElementsAre(End{}));
}

TEST_F(ReadLog, KeepsToItsMemoryWithAnyLog)
{
    out_log(std::string(10 << 20, 'x'));
    std::size_t total = 0;
    while (true) {
        const Item item = next(Writer::gone);
        const auto* piece = std::get_if<Output>(&item);
        if (!piece) {
            break;
        }
        EXPECT_LE(piece->bytes.size(), 256u << 10);
        total += piece->bytes.size();
    }
    EXPECT_EQ(total, 10u << 20);
}

TEST_F(ReadLog, ReadsWellWhileManySegmentsAreWritten)
{
    std::mt19937 random(1);
    std::string wanted;
    std::string got;
    Stream current = Stream::out;
    std::uint64_t segment = 0;
    for (int i = 0; i < 20'000; ++i) {
        if (random() % 3 == 0) {
            order(std::string(current == Stream::out ? "o " : "e ") + std::to_string(segment) +
                  "\n");
            current = current == Stream::out ? Stream::err : Stream::out;
            segment = 0;
        }
        const std::string bytes(random() % 20, static_cast<char>('a' + i % 26));
        m_store.append(path(current), bytes);
        segment += bytes.size();
        wanted += current == Stream::out ? bytes : "<" + bytes + ">";
        if (i % 97 != 0 && i != 19'999) {
            continue;
        }
        for (const Item& item : read(i == 19'999 ? Writer::gone : Writer::alive)) {
            const auto* piece = std::get_if<Output>(&item);
            got += !piece                         ? ""
                   : piece->stream == Stream::out ? piece->bytes
                                                  : "<" + piece->bytes + ">";
        }
    }
    const auto without_seams = [](std::string text) {
        for (const std::string seam : {"><", "<>"}) {
            for (std::size_t at = text.find(seam); at != std::string::npos; at = text.find(seam)) {
                text.erase(at, 2);
            }
        }
        return text;
    };
    EXPECT_EQ(without_seams(got), without_seams(wanted));
}

} // namespace
} // namespace gpuq
