// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"

#include <optional>

namespace gpuq::supervisor {

/// A TCP port of this node, reserved for as long as the object lives as the rendezvous port of one
/// run's ranks (MASTER_PORT). It is bound without listening, so the kernel does not assign it to
/// another run, to an outgoing connection or to a program that asks for any free port, of whichever
/// user. A program that sets SO_REUSEADDR before bind, as torch, gRPC, libuv, Go, Java and Python's
/// create_server do, can listen on it, repeatedly.
class MeetingPort {
public:
    /// Nullopt if there is no descriptor or no free port.
    static std::optional<MeetingPort> hold();
    int number() const { return m_number; }

private:
    MeetingPort(Descriptor socket, int number)
        : m_socket(std::move(socket))
        , m_number(number)
    {
    }
    Descriptor m_socket;
    int m_number;
};

} // namespace gpuq::supervisor
