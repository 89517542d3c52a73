// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/keytab.h"

#include "credentials/keeping.h"
#include "supervisor/base/external.h"

#include <fmt/format.h>

#include <cstring>

namespace gpuq::supervisor {
namespace {

using credentials::Source;

/// A program that starts needs a ticket with more than an eighth of its life left; from then on its
/// keeper renews it.
bool is_fresh(const credentials::Ticket& ticket, Time now)
{
    return ticket.end - now > ticket.life() / 8;
}

Result<void> take(SecretFiles& files, const CredentialPlan& plan, const char* name)
{
    TRY_ASSIGN(std::string bytes, files.read(plan.directory, name));
    const auto ticket = credentials::ticket_in(bytes);
    ::explicit_bzero(bytes.data(), bytes.size());
    return ticket ? files.move(plan.directory, name, k_renewed) : Result<void>(ticket.error());
}

} // namespace

std::vector<std::string> login_arguments(const std::string& kinit, const CredentialPlan& plan,
                                         const std::string& cache, bool forwardable)
{
    std::vector<std::string> arguments{kinit, "-k", "-t", plan.keytab, "-c", cache};
    if (forwardable) {
        arguments.emplace_back("-f");
    }
    arguments.insert(arguments.end(), {"--", plan.principal});
    return arguments;
}

std::string login_for_store(SecretFiles& files, const CredentialPlan& plan, Time now)
{
    constexpr const char* k_new = "login";
    auto stored = plan.keytab.empty() ? Result<StoredTicket>(fail(Error::Kind::missing, ""))
                                      : stored_ticket(files, plan.directory, now);
    const bool forwardable = stored && stored->ticket.forwardable;
    if (stored) {
        ::explicit_bzero(stored->cache.data(), stored->cache.size());
    }
    if (plan.keytab.empty() || (stored && is_fresh(stored->ticket, now))) {
        return "";
    }
    // Another user could have created the keytab; kinit does not check its owner.
    if (const auto keytab = files.read_own(plan.keytab);
        !keytab && keytab.error().kind == Error::Kind::denied) {
        return keytab.error().text;
    }
    const std::string kinit = kinit_of_node();
    if (const auto made = files.make_directory(plan.directory); !made || kinit.empty()) {
        return made ? k_no_kinit : made.error().text;
    }
    const std::string cache = fmt::format("FILE:{}/{}", plan.directory, k_new);
    const auto ended =
        finished({login_arguments(kinit, plan, cache, forwardable), in_english(cache)});
    const auto taken = ended && ended->status == 0 ? take(files, plan, k_new) : Result<void>();
    (void)files.remove(plan.directory, k_new);
    if (!ended) {
        return "can't start kinit on this node";
    }
    if (!ended->in_time) {
        return "the KDC has not answered in time";
    }
    const std::string output = one_line(ended->message);
    return ended->status != 0 ? describe(credentials::trouble_in(output, Source::keytab), output)
           : taken            ? ""
                              : taken.error().text;
}

} // namespace gpuq::supervisor
