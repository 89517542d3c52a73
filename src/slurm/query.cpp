// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/query.h"

#include "core/exit_status.h"
#include "io/descriptor.h"
#include "io/subprocess.h"
#include "log/log.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/list.h"

#include <fmt/format.h>

#include <csignal>
#include <unistd.h>

namespace gpuq {
namespace slurm {
namespace {

constexpr const char* k_name = "gpuq-accounting"; ///< argv[0] of the process

struct Request {
    QueryKind kind = QueryKind::past_job;
    log::Levels log;
    Rest query;
};

template <typename Query>
std::string encoded_answer_to(const std::string& query)
{
    const auto question = decoded<Query>(query);
    if (!question) {
        return "";
    }
    const auto kept = needs_accounting();
    return encoded_answer(kept ? answer(*question) : Result<typename Query::Answer>(kept.error()));
}

std::string encoded_answer_to(const Request& request)
{
    switch (request.kind) {
    case QueryKind::past_job:
        return encoded_answer_to<PastJobQuery>(request.query);
    case QueryKind::failures:
        return encoded_answer_to<FailuresQuery>(request.query);
    case QueryKind::associations:
        return encoded_answer_to<AssociationsQuery>(request.query);
    case QueryKind::use:
        return encoded_answer_to<UseQuery>(request.query);
    }
    return "";
}

} // namespace

Error unanswered(QueryKind kind, int code)
{
    if (kind == QueryKind::associations) {
        return fail(Error::Kind::unreachable,
                    fmt::format("Slurm's controller does not return the limits of accounts{}{}",
                                code == 0 ? "" : ": ", code == 0 ? "" : slurm_strerror(code)));
    }
    return fail(Error::Kind::unreachable,
                fmt::format("Slurm's accounting does not answer: {}",
                            slurm_strerror(code == 0 ? int(ESLURM_DB_CONNECTION) : code)));
}

std::optional<std::string> output_of_query(const std::string& program, QueryKind kind,
                                           const std::string& query,
                                           std::chrono::milliseconds patience)
{
    const auto input = file_in_memory(encoded(Request{kind, log::levels(), query}));
    if (!input) {
        return std::nullopt;
    }
    auto finished = run({.argv = {k_name},
                         .executable = program,
                         .descriptors = {input->get(), Subprocess::k_null, STDERR_FILENO},
                         .death_signal = SIGKILL},
                        {.streams = Capture::Streams::output, .limit = patience});
    return finished && finished->in_time && finished->status == 0
               ? std::optional(std::move(finished->out))
               : std::nullopt;
}

} // namespace slurm

bool is_accounting_process(std::string_view argv_0)
{
    return argv_0 == slurm::k_name;
}

int answer_query()
{
    std::string bytes;
    char piece[4096];
    ssize_t size = 0;
    while ((size = ::read(STDIN_FILENO, piece, sizeof piece)) > 0) {
        bytes.append(piece, static_cast<std::size_t>(size));
    }
    const auto request = decoded<slurm::Request>(bytes);
    if (!request || !slurm::choose_configuration({})) {
        return static_cast<int>(ExitStatus::usage);
    }
    log::to_stderr(request->log);
    slurm::load_configuration();
    const bool written = write_all(STDOUT_FILENO, slurm::encoded_answer_to(*request));
    return static_cast<int>(written ? ExitStatus::success : ExitStatus::internal);
}

} // namespace gpuq
