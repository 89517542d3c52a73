// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/start_ranks.h"

#include "core/split_arguments.h"
#include "supervisor/base/descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_own_arguments = 3; ///< ranks NODE --

} // namespace

std::vector<std::string> start_ranks_arguments(const std::string& executable,
                                               const std::string& node,
                                               std::vector<std::string> srun)
{
    std::vector<std::string> arguments{executable, "ranks", node, "--"};
    arguments.insert(arguments.end(), std::make_move_iterator(srun.begin()),
                     std::make_move_iterator(srun.end()));
    return arguments;
}

Result<int> start_ranks(const std::vector<std::string>& arguments, const std::string& host,
                        const FindRankPlaces& find)
{
    if (arguments.size() <= k_own_arguments || arguments[2] != "--") {
        return fail(Error::Kind::usage, "usage: gpuq-supervisor ranks NODE -- srun [ARG...]");
    }
    const bool known = std::getenv("MASTER_ADDR") != nullptr;
    const RankPlaces places = find(known ? "" : arguments[1]);
    if (!known) {
        ::setenv("MASTER_ADDR", places.address.value_or(host).c_str(), 1);
    }
    if (std::getenv("PET_MASTER_PORT") != nullptr) { // for torchrun, which runs once on each node
        ::setenv("PET_MASTER_ADDR", std::getenv("MASTER_ADDR"), 0);
    }
    std::vector<std::string> srun(arguments.begin() + k_own_arguments, arguments.end());
    if (places.binds_cpus) {
        srun.insert(srun.begin() + 1, "--cpu-bind=none");
    }
    ::execvp(srun.front().c_str(), pointers(srun).data());
    return fail(Error::Kind::not_found, fmt::format("{}: can't be executed on this node: {}",
                                                    srun.front(), error_text(errno)));
}

} // namespace gpuq::supervisor
