// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

/// Reviewed screens in tests/tui/screens.
namespace gpuq::tui {

/// Compares a screen with its file. After an intended change, GPUQ_WRITE_SCREENS=1 rewrites the
/// files: review the difference.
inline void expect_screen(const std::string& name, const Resized& size, const std::string& shown)
{
    const std::string file =
        fmt::format("{}/{}-{}x{}.txt", GPUQ_SCREENS_DIR, name, size.columns, size.rows);
    if (std::getenv("GPUQ_WRITE_SCREENS") != nullptr) {
        std::ofstream(file) << shown;
    }
    std::ifstream stream(file);
    const std::string before{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_TRUE(shown == before) << file << "\n" << shown;
}

/// Times on the screens are in UTC.
inline void use_utc()
{
    ::setenv("TZ", "UTC", 1);
    ::tzset();
}

} // namespace gpuq::tui
