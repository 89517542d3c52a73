// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "io/event_loop.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace gpuq::remote {

/// The stderr of ssh: kept for the diagnosis of its end, and shown line by line while it
/// connects for the first time.
class SshMessages {
public:
    /// `show` prints a line; `is_shown` is asked when bytes arrive.
    SshMessages(EventLoop& loop, std::function<bool()> is_shown,
                std::function<void(std::string_view line)> show);

    /// Begins with another ssh process; no descriptor: without one.
    void begin(Descriptor descriptor);
    /// Reads all available bytes.
    void read();
    void close() { m_descriptor.reset(); }
    /// What the newest ssh process has printed; the end of it, if that is much.
    const std::string& text() const { return m_text; }

private:
    void show_lines(std::string_view bytes);

    std::function<bool()> m_is_shown;
    std::function<void(std::string_view)> m_show;
    Descriptor m_descriptor;
    std::string m_text, m_line;
    std::size_t m_lines = 0; ///< of all ssh processes
};

} // namespace gpuq::remote
