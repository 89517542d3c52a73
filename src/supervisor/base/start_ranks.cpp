// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/start_ranks.h"

#include "core/words.h"
#include "supervisor/base/descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_own_words = 3; ///< ranks NODE --

} // namespace

std::vector<std::string> start_ranks_words(const std::string& executable, const std::string& node,
                                           std::vector<std::string> srun)
{
    std::vector<std::string> words{executable, "ranks", node, "--"};
    words.insert(words.end(), std::make_move_iterator(srun.begin()),
                 std::make_move_iterator(srun.end()));
    return words;
}

Result<int> start_ranks(const std::vector<std::string>& words, const std::string& host,
                        const FindRankPlaces& find)
{
    if (words.size() <= k_own_words || words[2] != "--") {
        return fail(Error::Kind::usage, "usage: gpuq-supervisor ranks NODE -- srun [ARG...]");
    }
    const bool known = std::getenv("MASTER_ADDR") != nullptr;
    const RankPlaces places = find(known ? "" : words[1]);
    if (!known) {
        ::setenv("MASTER_ADDR", places.address.value_or(host).c_str(), 1);
    }
    if (std::getenv("PET_MASTER_PORT") != nullptr) { // for torchrun, which runs once on each node
        ::setenv("PET_MASTER_ADDR", std::getenv("MASTER_ADDR"), 0);
    }
    std::vector<std::string> srun(words.begin() + k_own_words, words.end());
    if (places.binds_cpus) {
        srun.insert(srun.begin() + 1, "--cpu-bind=none");
    }
    ::execvp(srun.front().c_str(), pointers(srun).data());
    return fail(Error::Kind::not_found, fmt::format("{}: can't be executed on this node: {}",
                                                    srun.front(), error_text(errno)));
}

} // namespace gpuq::supervisor
