// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "wire/frame.h"
#include "wire/remote_frame.h"

#include <string>
#include <vector>

namespace gpuq::wire {

inline const std::string k_any_bytes("a\0b\xff\n", 5);

inline std::vector<Frame> one_of_each()
{
    const Ending ending{137, Cause::memory, "the node's memory was exhausted",
                        Time{std::chrono::microseconds{1'790'000'000'123'456}}};
    return {
        Attach{k_version, Role::guard, 1ULL << 40, 7},
        Attach{},
        Stdin{1ULL << 33, k_any_bytes},
        StdinEnd{99},
        Signal{1ULL << 63, 1ULL << 40, 15},
        Stop{"ada@login1"},
        OutputTaken{1ULL << 41, 1 << 20},
        Terminal{1ULL << 63, {50, 132}, true},
        Terminal{1, {65535, 1}, false},
        Take{"ada@login2"},
        Report{"port 80 is served by user ben (1001)"},
        Challenge{"0123456789abcdef0123456789abcdef"},
        Answer{"0123456789abcdef"},
        Bye{},
        Hello{k_version, "20261120T131158.042Z-0f3a9c1e5b7d2468", 3, 4'000'000'000U, "n1"},
        Started{4242},
        Output{Stream::err, ~0ULL - 5, k_any_bytes},
        Output{Stream::out, 0, ""},
        Output{Stream::out, 1, std::string(k_piece, 'x')},
        StdinTaken{5, 1 << 20},
        SignalTaken{1ULL << 40},
        Note{"15 minutes left"},
        Screen{k_any_bytes},
        Taken{"ada@login2"},
        Refused{"200 clients are already connected"},
        Proof{"fedcba9876543210fedcba9876543210", "fedcba9876543210"},
        Ended{ending, 1ULL << 50, 3, "last\nlines\n"},
        Ended{Ending{-1, Cause::lost, "", Time{}}, 0, 0, ""},
        Ended{Ending{0, Cause::finished, "", Time{}, true}, 0, 0, "", 1ULL << 35},
    };
}

namespace remote {

inline std::vector<Frame> one_of_each()
{
    Start start;
    start.arguments = {"run", "--", "train.py", "", k_any_bytes};
    start.directory = "~/work";
    start.variables = {"TERM=xterm", "LANG=C.UTF-8"};
    start.terminals = {true, false, true};
    start.raw = true;
    start.size = {50, 132};
    start.patience = std::chrono::hours{3};
    start.forwards = {"localhost:6006", "node2:1"};
    start.no_input = true;
    start.brief = true;
    return {
        Open{k_version, 1, std::string(32, 'a'), 1ULL << 40, 7, std::chrono::milliseconds{1000}, 9},
        start,
        Start{},
        Taken{1ULL << 50, 3},
        Input{1ULL << 33, k_any_bytes},
        InputEnd{99},
        Resize{{65535, 1}, true},
        Signal{15, 1ULL << 40},
        Bye{},
        Hello{k_version, "0.1.0", "login1", true, 1ULL << 41, 1 << 18, 3},
        Output{Stream::err, ~0ULL - 5, k_any_bytes},
        Output{Stream::out, 1, std::string(k_piece, 'x')},
        InputTaken{5, 1 << 18},
        Following{"20261120T131158.042Z-0f3a9c1e5b7d2468", 4'000'000'000U, 3, 1ULL << 40, 2},
        SshTarget{"20261120T131158.042Z-0f3a9c1e5b7d2468", 4'000'000'000U, "ada"},
        SignalTaken{1ULL << 40},
        Exit{137, 10, 20},
        Failure{Error::Kind::missing, "no such folder"},
        Beat{~0ULL},
        Dial{~0U, 3},
        StreamBytes{7, k_any_bytes},
        StreamBytes{0, std::string(k_piece, 'x')},
        StreamTaken{7, 1 << 19},
        StreamEnd{7},
        StreamClosed{~0U, "no sshd on node n1"},
        InputRead{1ULL << 40},
    };
}

} // namespace remote
} // namespace gpuq::wire
