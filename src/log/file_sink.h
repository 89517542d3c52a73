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
    FileSink(std::string path, std::size_t most);

    /// Appends in one write(). False and errno if it can't be written completely. Blocks as long as
    /// the disk does.
    bool write(std::string_view line);

private:
    bool open();
    bool is_replaced() const;
    void rotate();

    std::string m_path;
    std::size_t m_most;
    Descriptor m_file;
};

} // namespace gpuq::log
