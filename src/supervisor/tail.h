// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The end of the program's output, for the record of how it ended.
class Tail {
public:
    void add(Stream stream, std::string_view bytes);

    /// Up to five lines and 2 KiB: of stderr when there is any, else of stdout.
    std::string last_lines() const;
    /// The last 64 KiB of either stream hold a framework's words for a GPU without free memory.
    bool says_gpu_out_of_memory() const;

private:
    std::string m_out, m_err;
};

} // namespace gpuq::supervisor
