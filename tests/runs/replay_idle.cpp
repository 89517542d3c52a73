// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/idle.h"
#include "telemetry/sample_file.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

// For tests/live/test_idle.py: replay_idle SAMPLES IDLE.json. Judges the samples of a run
// (link-N/samples-NODE) again and compares the result with the supervisor's finding
// (link-N/idle.json). Exit status: 0 if both agree, 1 if not, 2 for a usage error or an unreadable
// finding.

using namespace gpuq;
using State = telemetry::IdleVerdict::State;

namespace {

std::string text_of(const char* path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

int main(int argc, char** argv)
{
    const auto found = argc == 3 ? idle_finding_from_json(text_of(argv[2]))
                                 : Result<IdleFinding>(fail(Error::Kind::usage, "two files"));
    if (!found) {
        fmt::print(stderr, "usage: replay_idle SAMPLES IDLE.json: {}\n", found.error().text);
        return 2;
    }
    const auto again =
        telemetry::replayed(all_samples(text_of(argv[1])), found->rule, found->evidence);
    if (!again) {
        fmt::print("no sample of {} ms\n", found->evidence.at.count());
        return 1;
    }
    const bool release = again->state == State::release;
    const bool same = again->evidence == found->evidence &&
                      release == (found->state == IdleFinding::State::released) &&
                      (release || again->state == State::warn);
    fmt::print("{}: {} at {} ms, idle since {} ms, {} samples, {} ms missing\n",
               same ? "the same" : "another", release ? "release" : "none",
               again->evidence.at.count(), again->evidence.idle_since.count(),
               again->evidence.samples, again->evidence.missing.count());
    return same ? 0 : 1;
}
