// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/descriptor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The program's stdin: bytes from clients, addressed by offset, a bounded buffer, and the pipe to
/// the program.
class InputBuffer {
public:
    /// `pipe` may be closed from the start: then all input is accepted and discarded.
    void open(Descriptor* pipe) { m_pipe = pipe; }

    /// Accepts the bytes that are new. False if there is a gap before `offset`.
    bool take(std::uint64_t offset, std::string_view bytes);
    /// Marks the end of the input: stdin is closed once all bytes have been written to the program.
    /// False if there is a gap before `offset`.
    bool end(std::uint64_t offset);
    /// Writes as much as possible to the program.
    void flush();
    /// The program has closed its stdin or has ended.
    void give_up();

    std::uint64_t taken() const { return m_taken; }
    /// How many of these bytes the program has read from the pipe.
    std::uint64_t read_by_program() const;
    std::uint64_t room() const;
    bool ended() const { return m_ended; }
    /// True if further input, or its end, no longer matters.
    bool closed() const { return !m_pipe || !*m_pipe; }
    bool has_bytes() const { return m_start < m_buffer.size(); }
    int pipe() const { return m_pipe ? m_pipe->get() : -1; }

private:
    Descriptor* m_pipe = nullptr;
    std::string m_buffer;
    std::size_t m_start = 0;
    std::uint64_t m_taken = 0;
    bool m_ended = false;
    Descriptor m_after_end;              ///< the read end of the pipe, once everything is written
    std::optional<std::uint64_t> m_read; ///< set when it was given up
};

} // namespace gpuq::supervisor
