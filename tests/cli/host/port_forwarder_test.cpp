// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/port_forwarder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace gpuq::cli {
namespace {

/// The result, and the number of commands that were started. The first one connects and ends; those
/// after it have the given exit statuses.
std::pair<int, std::size_t> forward_with(const std::vector<int>& later)
{
    Signals signals;
    std::size_t starts = 0;
    ForwarderOptions options;
    options.command = [&](bool again) {
        EXPECT_EQ(again, starts > 0);
        const std::size_t index = starts++;
        return std::vector<std::string>{"sh", "-c",
                                        index == 0 ? "echo connected"
                                                   : "exit " + std::to_string(later.at(index - 1))};
    };
    options.greeting = [](std::string_view line) -> Result<void> {
        EXPECT_EQ(line, "connected");
        return {};
    };
    options.greets_when_connected = true;
    options.result = [](int status) {
        return status == 2 ? std::optional(0) : lasting_failure(status);
    };
    options.print_message = [](std::string_view) {};
    const auto status = forward_ports(std::move(options), signals);
    return {status.value(), starts};
}

TEST(PortForwarder, StartsTheCommandAgainUntilTheRunHasEnded)
{
    EXPECT_EQ(forward_with({125, 120, 119, 2}), std::pair(0, std::size_t{5}));
}

TEST(PortForwarder, PrintsTheReasonOfRepeatedFailuresOnce)
{
    Signals signals;
    std::vector<std::string> messages;
    ForwarderOptions options;
    options.command = [starts = 0](bool) mutable {
        const std::array scripts{"echo connected",
                                 "echo 'gpuq: the next link waits' >&2; exit 120",
                                 "echo 'gpuq: the next link waits' >&2; exit 120",
                                 "echo 'gpuq: Slurm is silent' >&2; exit 120",
                                 "echo connected; echo 'gpuq: Slurm is silent' >&2",
                                 "echo 'gpuq: Slurm is silent' >&2; exit 120",
                                 "exit 2"};
        return std::vector<std::string>{"sh", "-c", scripts.at(static_cast<std::size_t>(starts++))};
    };
    options.greeting = [](std::string_view) -> Result<void> { return {}; };
    options.greets_when_connected = true;
    options.result = [](int status) { return status == 2 ? std::optional(0) : std::nullopt; };
    options.print_message = [&](std::string_view text) { messages.emplace_back(text); };
    EXPECT_EQ(forward_ports(std::move(options), signals).value(), 0);
    EXPECT_THAT(messages,
                testing::ElementsAre("the next link waits", "Slurm is silent", "Slurm is silent"));
}

TEST(PortForwarder, DoesNotRepeatARefusedLogin)
{
    for (const int status : {121, 126, 127}) {
        EXPECT_EQ(forward_with({status, 2}), std::pair(status, std::size_t{2}));
    }
}

} // namespace
} // namespace gpuq::cli
