// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::yaml {

/// A new text for the scalar at a position of a document, as in Node.
struct Replacement {
    int line = 0;
    int column = 0;
    std::string text; ///< letters, digits and -_.,:[] only
};

/// The document with these scalars replaced, and every other byte as it was: comments, order and
/// spacing are kept, except that the blanks before a comment in the same line change so that it
/// stays in its column. A scalar that was quoted stays quoted, and one that needs quotes gets
/// them. `usage` if the text is no document, if no scalar is at a position, or if it is written in
/// a way that this function does not handle, such as over several lines.
Result<std::string> with_replaced(std::string_view text, const std::string& file,
                                  std::vector<Replacement> replacements);

} // namespace gpuq::yaml
