// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/peer_data.h"

#include "term/sanitise.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuq::remote {
namespace {

namespace frames = wire::remote;

constexpr const char* k_key = "20261120T131158.042Z-0f3a9c1e5b7d2468";

frames::Hello hello_of(std::string program, std::string host)
{
    frames::Hello hello;
    hello.program = std::move(program);
    hello.host = std::move(host);
    return hello;
}

TEST(PeerData, TakesWhatAServerSends)
{
    const std::vector<frames::Frame> good = {hello_of("0.1.0~rc1", "login1.example.org"),
                                             frames::Following{k_key, 7, 0, 1, ~0ULL},
                                             frames::SshTarget{k_key, 0, "ada"},
                                             frames::SshTarget{k_key, 7, "ada.l@example.org"},
                                             frames::Exit{255, 0, 0},
                                             frames::Output{},
                                             frames::Beat{},
                                             frames::StreamClosed{1, "why"},
                                             frames::Failure{}};
    for (const frames::Frame& frame : good) {
        EXPECT_EQ(fault_in(frame, Sender::server), std::nullopt) << frame.index();
    }
}

TEST(PeerData, RefusesWhatAServerCanNotSend)
{
    frames::Hello old = hello_of("0.1", "login1");
    old.version = 0;
    const std::vector<frames::Frame> bad = {
        old, hello_of("0.1\x1b[2J", "login1"), hello_of("0.1", "login1\nHost *"),
        hello_of("0.1", std::string(256, 'x')), hello_of("", "login1"),
        frames::Following{"../../.ssh", 7, 1, 0, 0},
        frames::Following{"--to=/home/ada/.bashrc", 7, 1, 0, 0},
        frames::Following{k_key, 7, -1, 0, 0},
        frames::SshTarget{std::string(k_key) + "\nMatch exec id", 7, "ada"},
        frames::SshTarget{k_key, 7, "ada\n    ProxyCommand id"},
        frames::SshTarget{k_key, 7, "-oProxyCommand=id"}, frames::SshTarget{k_key, 7, "%d"},
        frames::SshTarget{k_key, 7, "$(id)"}, frames::SshTarget{k_key, 7, std::string(65, 'a')},
        frames::SshTarget{k_key, 7, ""}, frames::Exit{256, 0, 0}, frames::Exit{-1, 0, 0},
        // Frames that only a client may send.
        frames::Open{}, frames::Start{}, frames::Taken{}, frames::Input{}, frames::InputEnd{},
        frames::Resize{}, frames::Signal{}, frames::Bye{}, frames::Dial{}};
    for (const frames::Frame& frame : bad) {
        EXPECT_TRUE(fault_in(frame, Sender::server)) << frame.index();
    }
}

TEST(PeerData, RefusesWhatAClientCanNotSend)
{
    frames::Start start;
    start.forwards = {"localhost:80"};
    frames::Open open;
    open.session = std::string(32, 'a');
    EXPECT_EQ(fault_in(start, Sender::client), std::nullopt);
    EXPECT_EQ(fault_in(open, Sender::client), std::nullopt);
    open.session = "../x";
    EXPECT_TRUE(fault_in(open, Sender::client));
    for (const char* forward : {"-x:1", "a:b", "a b:1", "a:0", "", "/run/x.sock"}) {
        start.forwards = {forward};
        EXPECT_TRUE(fault_in(start, Sender::client)) << forward;
    }
    start.forwards.assign(frames::k_most_forwards + 1, "localhost:80");
    EXPECT_TRUE(fault_in(start, Sender::client));
    for (const frames::Frame& frame : std::vector<frames::Frame>{
             hello_of("0.1", "x"), frames::Output{}, frames::Following{k_key}, frames::SshTarget{},
             frames::Exit{}, frames::Failure{}, frames::InputTaken{}, frames::InputRead{},
             frames::SignalTaken{}}) {
        EXPECT_TRUE(fault_in(frame, Sender::client)) << frame.index();
    }
}

TEST(PeerData, TextIsOneClippedLineWithoutControlCharacters)
{
    EXPECT_EQ(peer_text("no such run"), "no such run");
    EXPECT_EQ(peer_text("a\x1b[2Jb\nc"), "a^[[2Jb^Jc");
    const std::string marks = std::string(2000, 'x') + "\xcc\x81\xcc\x81";
    EXPECT_EQ(cells(peer_text(std::string(1 << 20, 'x'))), k_most_cells);
    EXPECT_EQ(peer_text(marks, 5), "xxxx\u2026");
}

} // namespace
} // namespace gpuq::remote
