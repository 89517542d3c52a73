// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace gpuq::log {

/// Appends lines to a file that several processes share, with mode 0600, and rotates it. spdlog's
/// rotating sink assumes that it is the only one, opens by name and follows links.
class FileSink {
public:
    /// A full file becomes PATH.1 in place of the last one, or PATH.N with the next N.
    enum class Full { replaces_last, is_kept };
    FileSink(std::string path, std::size_t most, Full full = Full::replaces_last);

    /// Appends in one write(). False and errno if it can't be written completely. Blocks as long as
    /// the disk does.
    bool write(std::string_view line);

private:
    bool open();
    bool is_replaced() const;
    void rotate();

    std::string m_path;
    std::size_t m_most;
    Full m_full;
    Descriptor m_file;
};

} // namespace gpuq::log
