// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/member.h"

#include "core/descriptor.h"
#include "core/exit_status.h"
#include "core/number.h"
#include "core/sanitise.h"
#include "core/words.h"
#include "supervisor/sampler.h"
#include "supervisor/sampling.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_own_words = 5; ///< member FOLDER FIRST GPUS --

/// A child of nobody that the program knows: one that waits for any child is not to wait for it.
void sample_beside(const std::string& folder, const std::string& node, int gpus)
{
    const Descriptor link(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const pid_t program = ::getpid();
    const pid_t between = ::fork();
    if (between == 0) {
        ::setsid();
        // Its lifeline is the program itself; this one never ends.
        const Descriptor never(::eventfd(0, EFD_CLOEXEC));
        if (link && never && ::fork() == 0) {
            become_sampler({"/proc/self/exe", node, k_gpus_of_step, gpus, link.get(), false},
                           program, never.get(), -1);
        }
        ::_exit(0);
    }
    while (between > 0 && ::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
    }
}

} // namespace

std::vector<std::string> member_words(const MemberPlan& plan)
{
    return {plan.executable,           "member", plan.folder, plan.first_node,
            std::to_string(plan.gpus), "--"};
}

Result<int> become_member(const std::vector<std::string>& words, const std::string& node)
{
    const auto gpus = words.size() > k_own_words ? whole_number(words[3]) : std::nullopt;
    if (!gpus || words[4] != "--") {
        return fail(Error::Kind::usage,
                    "usage: gpuq-supervisor member FOLDER NODE GPUS -- PROGRAM [ARG...]");
    }
    if (node != words[2]) {
        sample_beside(words[1], node, static_cast<int>(*gpus));
    }
    const std::vector<std::string> own(words.begin() + k_own_words, words.end());
    ::execvp(own.front().c_str(), pointers(own).data());
    const bool missing = errno == ENOENT;
    return fail(missing ? Error::Kind::not_found : Error::Kind::not_executable,
                fmt::format("{}: {} on node {}", sanitised(own.front()),
                            missing ? "not found" : "not executable", node));
}

} // namespace gpuq::supervisor
