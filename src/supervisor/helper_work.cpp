// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/helper_work.h"

#include "core/exit_status.h"
#include "io/descriptor.h"
#include "runs/records/record.h"
#include "supervisor/base/helper.h"
#include "supervisor/base/job_signals.h"
#include "supervisor/chain/chain_work.h"
#include "supervisor/notice_elsewhere.h"
#include "supervisor/sampler/use_note.h"

#include <tuple>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

/// The result of `work` for the decoded inputs; empty if any of them is missing or invalid.
template <typename... Inputs, typename Work>
std::string with(const std::string& input, const Work& work)
{
    const auto inputs = decoded<std::tuple<Inputs...>>(input);
    return inputs ? std::apply(work, *inputs) : "";
}

std::string result_of(Services& services, const Options& options, const HelperWork& work)
{
    switch (work.kind) {
    case HelperWork::Kind::query_job:
        return with<std::string>(work.input, [&](const std::string& queues) {
            const auto news = query_job(services, options.job.value(), queues);
            return news ? encoded(*news) : "";
        });
    case HelperWork::Kind::complete:
        return with<int>(work.input, [&](int status) {
            return complete_job(services, options.job.value(), status);
        });
    case HelperWork::Kind::notice:
        return with<int, Notice>(work.input, [&](int nodes, Notice notice) {
            return encoded(notify_elsewhere(services, options, nodes, notice));
        });
    case HelperWork::Kind::note:
        return with<std::chrono::milliseconds, JobEnd>(work.input, [&](auto allocated, JobEnd end) {
            return note_use(services, options, allocated, end);
        });
    case HelperWork::Kind::submit:
        return with<std::chrono::seconds>(work.input, [&](auto length) {
            return encoded(submit_next(services, options, length));
        });
    case HelperWork::Kind::find_checkpoints:
        return with<CheckpointSet>(work.input, [&](const CheckpointSet& before) {
            const auto found = find_checkpoints_again(services, options, before);
            return found ? encoded(*found) : "";
        });
    case HelperWork::Kind::conclude:
        return with<LinkPast, CheckpointSet, bool>(
            work.input, [&](const LinkPast& self, const CheckpointSet& before, bool by_itself) {
                return encoded(conclude(services, options, self, before, by_itself));
            });
    case HelperWork::Kind::withdraw:
        withdraw_next(services, options);
        return "";
    }
    return "";
}

std::string read_to_the_end(int fd)
{
    std::string text;
    char piece[4096];
    ssize_t size = 0;
    while ((size = ::read(fd, piece, sizeof piece)) > 0) {
        text.append(piece, static_cast<std::size_t>(size));
    }
    return text;
}

} // namespace

int help(Services& services, Options options)
{
    heed_no_job_signals();
    const auto request = decoded<HelperRequest>(read_to_the_end(STDIN_FILENO));
    if (!request) {
        return static_cast<int>(ExitStatus::usage);
    }
    options.job = request->job;
    const bool written = write_all(k_helper_answer, result_of(services, options, request->work));
    return static_cast<int>(written ? ExitStatus::success : ExitStatus::internal);
}

} // namespace gpuq::supervisor
