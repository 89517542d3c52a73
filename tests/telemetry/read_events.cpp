// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/event_file.h"

#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <string>

// For tests/bench/tfevents: read_events FILE. Reads an event file from disk in pieces of 1 MiB.
// Prints `seconds S` (CPU time of the reader alone), `bytes N`, `records N`, `bad N`, and for each
// tag `TAG points N last STEP VALUE`.

using namespace gpuq;

int main(int argc, char** argv)
{
    std::ifstream file(argc == 2 ? argv[1] : "", std::ios::binary);
    if (!file) {
        fmt::print(stderr, "usage: read_events FILE\n");
        return 2;
    }
    telemetry::EventFile events;
    telemetry::Curves curves;
    std::clock_t spent = 0;
    std::string piece(1U << 20, '\0');
    while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) ||
           file.gcount() > 0) {
        const std::clock_t begin = std::clock();
        events.feed({piece.data(), static_cast<std::size_t>(file.gcount())}, curves);
        spent += std::clock() - begin;
    }
    fmt::print("seconds {:.6f}\nbytes {}\nrecords {}\nbad {}\n",
               static_cast<double>(spent) / CLOCKS_PER_SEC, events.offset(), events.records(),
               events.bad_records());
    for (const auto& [tag, series] : curves.by_tag()) {
        fmt::print("{} points {} last {} {:.9g}\n", tag, series.points(), series.last()->step,
                   series.last()->value);
    }
}
