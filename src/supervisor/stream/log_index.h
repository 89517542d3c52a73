// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "ports/clock.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/stream/backlog.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

/// The two files that describe the log of a link: `order`, how its streams were interleaved, and
/// `times`, when they were written. Text that can't be written now is kept and written together
/// with later text. Blocking; for one thread.
namespace gpuq::supervisor {

/// Text at the end of a file that only this object extends.
struct AppendedText {
    std::string pending;
    std::uint64_t size = 0; ///< of the file

    /// Writes the pending text, all of it or nothing. Nothing if `file` is negative.
    void write(int file);
};

class OrderFile {
public:
    /// The log continues with `size` bytes of a stream; writes a line if the stream has changed.
    /// `file` is negative while it can't be written, also below.
    void add(Stream stream, std::uint64_t size, int file);
    /// While too much is pending, the interleaving of that part is lost.
    void write(int file);

private:
    std::optional<Stream> m_segment;
    std::uint64_t m_segment_size = 0;
    AppendedText m_text;
};

class TimesFile {
public:
    /// Whether the next line may be written.
    bool is_due(std::chrono::steady_clock::time_point now) const { return now >= m_next; }
    /// Records the current time for the output since the last line; `written` are the sizes of the
    /// streams. The file is created in `directory`, which is negative while it can't be written.
    void note(const Position& written, Clock& clock, int directory);

private:
    Descriptor m_file; ///< opened with the first output
    AppendedText m_text;
    Position m_noted{}; ///< the sizes in its last line
    std::chrono::steady_clock::time_point m_next;
};

} // namespace gpuq::supervisor
