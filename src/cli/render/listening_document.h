// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "report/json.h"

#include <cstdint>
#include <string>
#include <vector>

/// JSON of the commands that listen on ports of this machine, printed once they have connected.
/// Pure.
namespace gpuq::cli {

/// A page that only its user can open.
struct ListeningPage {
    std::string address; ///< URL
    std::uint16_t port = 0;
};

/// `run`: the key.
report::Json::Members notebook_document(const ListeningPage& page, const std::string& run,
                                        JobId job);

/// `runs`: as given on the command line.
report::Json::Members tensorboard_document(const ListeningPage& page,
                                           const std::vector<std::string>& runs);

struct ListeningPort {
    std::uint16_t port = 0;
    std::string to; ///< HOST:PORT, as seen from the node
};

/// `run`: the key.
report::Json::Members forward_document(const std::vector<ListeningPort>& ports,
                                       const std::string& run);

} // namespace gpuq::cli
