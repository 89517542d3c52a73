// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/plan.h"
#include "remote/login_means.h"
#include "remote/ssh_facts.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace gpuq::remote;

namespace {

void check(bool holds)
{
    if (!holds) {
        std::abort();
    }
}

} // namespace

/// The output of `ssh -G`, which contains the user's own text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)ssh_facts_from(text);
    (void)login_means_from(text);
    const auto plan = plan_from(text, {"/home/ada", "/run/agent", "login"});
    if (!plan) {
        check(!plan.error().text.empty());
        return 0;
    }
    check(!plan->host.empty() && !plan->user.empty() && plan->port != 0 && !plan->known_as.empty());
    check(plan->connect_timeout.count() > 0 && plan->tries > 0);
    for (const std::string& file : plan->identities) {
        check(file.find('%') == std::string::npos && !file.starts_with('~'));
    }
    return 0;
}
