// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/descriptor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The program's stdin: bytes by offset from clients, a bounded buffer, the pipe to the program.
class InputBuffer {
public:
    /// `pipe` may be closed from the start: then all is taken and thrown away.
    void open(Descriptor* pipe) { m_pipe = pipe; }

    /// Takes what it does not have yet. False when bytes before `offset` never came.
    bool take(std::uint64_t offset, std::string_view bytes);
    /// The end of file, once all before it has reached the program.
    bool end(std::uint64_t offset);
    /// Writes on to the program.
    void flush();
    /// The program has closed its stdin, or is gone.
    void give_up();

    std::uint64_t taken() const { return m_taken; }
    /// How many of these bytes the program has read out of the pipe.
    std::uint64_t read_by_program() const;
    std::uint64_t room() const;
    bool ended() const { return m_ended; }
    /// Nothing that comes, or breaks off, matters any more.
    bool closed() const { return !m_pipe || !*m_pipe; }
    bool has_bytes() const { return m_start < m_buffer.size(); }
    int pipe() const { return m_pipe ? m_pipe->get() : -1; }

private:
    Descriptor* m_pipe = nullptr;
    std::string m_buffer;
    std::size_t m_start = 0;
    std::uint64_t m_taken = 0;
    bool m_ended = false;
    Descriptor m_after_end;              ///< the pipe's other side, once there is no more to write
    std::optional<std::uint64_t> m_read; ///< known since it was given up
};

} // namespace gpuq::supervisor
