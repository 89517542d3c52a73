// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The end of the program's output, for the record of its ending.
class Tail {
public:
    void add(Stream stream, std::string_view bytes);

    /// Up to five lines and 2 KiB: of stderr unless it is empty, else of stdout.
    std::string last_lines() const;
    /// True if the end of either stream (at least 64 KiB) contains a framework's message about
    /// exhausted GPU memory.
    bool has_gpu_out_of_memory() const;

private:
    std::string m_out, m_err;
};

} // namespace gpuq::supervisor
