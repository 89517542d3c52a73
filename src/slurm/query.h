// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/codec.h"
#include "ports/use_records.h"
#include "slurm/grants.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Queries of accounting, each made by a process of its own: libslurm waits up to 90 seconds for a
/// slurmdbd that hangs, and may end the process that uses it. The process executes this program
/// again instead of being a fork, since the caller may have threads (`gpuq top`):
///
///     ask(query) ── its stdin: encoded query ──> answer_query() ── answer(query)
///                <── its stdout: encoded answer
///
namespace gpuq::slurm {

enum class QueryKind { past_job, failures, associations, use };
constexpr QueryKind last_of(QueryKind)
{
    return QueryKind::use;
}

struct PastJobQuery {
    using Answer = PastJob;
    static constexpr auto k_kind = QueryKind::past_job;
    static constexpr std::chrono::seconds k_patience{10};
    JobId id;
};
struct FailuresQuery {
    using Answer = NodeHistory;
    static constexpr auto k_kind = QueryKind::failures;
    static constexpr std::chrono::seconds k_patience{10};
    Time from, to;
};
/// All associations of the cluster: one for each account and each user in it, about ten thousand at
/// the largest sites.
struct AssociationsQuery {
    using Answer = std::vector<Association>;
    static constexpr auto k_kind = QueryKind::associations;
    static constexpr std::chrono::seconds k_patience{20};
};
/// Jobs that had GPUs. A busy cluster has a hundred thousand jobs a month; slurmdbd sends a few
/// thousand per second.
struct UseQuery {
    using Answer = std::vector<UseRecord>;
    static constexpr auto k_kind = QueryKind::use;
    static constexpr std::chrono::seconds k_patience{60};
    UseQuestion question;
    Steps steps = Steps::leave_out;
};

/// Make the query in this process.
Result<PastJob> answer(const PastJobQuery& query);
Result<NodeHistory> answer(const FailuresQuery& query);
Result<std::vector<Association>> answer(const AssociationsQuery& query);
Result<std::vector<UseRecord>> answer(const UseQuery& query);

/// The error of a query that failed with this errno, or without an answer (0).
Error unanswered(QueryKind kind, int code);

/// Encoded answers: whether there is one, and it or the error.
template <typename Answer>
std::string encoded_answer(const Result<Answer>& answer)
{
    return answer ? encoded(true, *answer) : encoded(false, answer.error());
}
/// Nullopt if the bytes are not an encoded answer.
template <typename Answer>
std::optional<Result<Answer>> decoded_answer(std::string_view bytes)
{
    ValueReader in(bytes);
    auto answer = in.next<bool>() ? Result<Answer>(in.next<Answer>()) : in.next<Error>();
    return in.ok() && in.at_end() ? std::optional(std::move(answer)) : std::nullopt;
}

/// The output of `program`, executed to make a query; nullopt if it did not end well in time.
std::optional<std::string> output_of_query(const std::string& program, QueryKind kind,
                                           const std::string& query,
                                           std::chrono::milliseconds patience);

/// Makes a query in a process that executes `program`, which must call answer_query().
/// `unreachable` if it gives no answer within its patience, in which case it is killed.
template <typename Query>
Result<typename Query::Answer> ask(const std::string& program, const Query& query)
{
    const auto output = output_of_query(program, Query::k_kind, encoded(query), Query::k_patience);
    auto answer = decoded_answer<typename Query::Answer>(output.value_or(""));
    return answer ? *std::move(answer) : unanswered(Query::k_kind, 0);
}

} // namespace gpuq::slurm
