// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpuq {

/// The end of what a program wrote as plain lines, at most `rows` of them: cursor movements within
/// a line are followed, all else that is not text is left out.
std::string plain_lines(std::string_view bytes, std::size_t rows);

} // namespace gpuq
