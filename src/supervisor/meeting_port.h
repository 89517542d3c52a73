// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"

#include <optional>

namespace gpuq::supervisor {

/// A TCP port of this node that is kept for the ranks of one run to meet at (MASTER_PORT), for as
/// long as the object lives. It is bound, but nobody listens at it: the kernel gives it to no other
/// run, no outgoing connection and no program that takes any free port, whoever's these are. A
/// program that sets SO_REUSEADDR before it binds, as torch, gRPC, libuv, Go, Java and Python's
/// create_server do, can listen there, again and again.
class MeetingPort {
public:
    /// Nothing when there is no descriptor or no free port.
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
