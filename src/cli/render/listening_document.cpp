// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/listening_document.h"

#include <fmt/format.h>

#include <utility>

namespace gpuq::cli {
namespace {

using report::Json;

/// The only state: a command that can't connect prints no document.
constexpr const char* k_connected = "connected";

} // namespace

Json::Members notebook_document(const ListeningPage& page, const std::string& run, JobId job)
{
    return {{"address", page.address},
            {"port", page.port},
            {"run", run},
            {"job", job},
            {"state", k_connected}};
}

Json::Members tensorboard_document(const ListeningPage& page, const std::vector<std::string>& runs)
{
    return {{"address", page.address},
            {"port", page.port},
            {"runs", Json::array(runs)},
            {"state", k_connected}};
}

Json::Members forward_document(const std::vector<ListeningPort>& ports, const std::string& run)
{
    Json::Elements list;
    for (const ListeningPort& each : ports) {
        list.push_back(Json::object({{"address", fmt::format("localhost:{}", each.port)},
                                     {"port", each.port},
                                     {"to", each.to}}));
    }
    return {{"run", run}, {"ports", Json::array(std::move(list))}, {"state", k_connected}};
}

} // namespace gpuq::cli
