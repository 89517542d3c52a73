// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/serve_verb.h"

#include "cli/surroundings.h"
#include "cli/tickets.h"
#include "remote/serve.h"
#include "wire/remote_frame.h"

#include <unistd.h>

namespace gpuq::cli {
namespace {

Result<int> serve(Invocation& invocation)
{
    if (::isatty(STDIN_FILENO) == 1) {
        return fail(Error::Kind::usage, "gpuq serve is for ssh to start: gpuq --host NAME VERB, on "
                                        "the machine where you sit");
    }
    TRY_ASSIGN(const std::string program, invocation.doors.program());
    remote::ServeOptions options;
    if (!invocation.words.empty()) {
        auto early = wire::remote::bytes_of_word(invocation.words.front());
        if (!early || invocation.words.size() > 1) {
            return fail(Error::Kind::usage,
                        "gpuq serve takes one word, which gpuq --host has made");
        }
        options.early = *std::move(early);
    }
    options.program = program;
    options.identity = {GPUQ_VERSION, host_name()};
    // The new connection may have brought a ticket, which sshd removes at its end.
    options.came_back = [&doors = invocation.doors] { refresh_tickets(doors); };
    return remote::serve(options);
}

} // namespace

const Verb k_serve_verb{"serve", "gpuq serve", "the far end of gpuq --host", serve};

} // namespace gpuq::cli
