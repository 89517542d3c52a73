// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stage.h"

#include <gtest/gtest.h>

/// The tests, or a helper of the supervisor of one of them.
int main(int argc, char** argv)
{
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (!arguments.empty() && arguments[0] == "helper") {
        return gpuq::supervisor::Stage::help(arguments);
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
