// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "nvml/gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>

namespace gpuq::nvml {

/// The scenario that the fake library simulates after its next initialisation.
struct Scenario {
    explicit Scenario(const std::string& rules)
        : path(testing::TempDir() + "/nvml-" + std::to_string(::getpid()))
    {
        std::ofstream(path) << rules;
        ::setenv("GPUQ_FAKE_NVML", path.c_str(), 1);
    }
    ~Scenario() { ::unlink(path.c_str()); }
    Scenario(const Scenario&) = delete;
    Scenario& operator=(const Scenario&) = delete;

    std::string path;
};

constexpr const char* k_tesla =
    "total=12884901888 used=1073741824 util=87 power=143000 temp=61 sm=875 mem=2505\n";

} // namespace gpuq::nvml
