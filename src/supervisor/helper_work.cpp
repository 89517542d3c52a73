// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/helper_work.h"

#include "core/exit_status.h"
#include "core/number.h"
#include "io/descriptor.h"
#include "runs/records/record.h"
#include "supervisor/base/helper.h"
#include "supervisor/base/job_signals.h"
#include "supervisor/chain/chain_work.h"
#include "supervisor/notice_elsewhere.h"
#include "supervisor/sampler/use_note.h"

#include <unistd.h>

namespace gpuq::supervisor {
namespace {

template <typename Number>
Number number_in(const std::string& text)
{
    return static_cast<Number>(whole_number(text).value_or(0));
}

std::string result_of(Services& services, const Options& options, const HelperWork& work)
{
    const std::vector<std::string>& in = work.inputs;
    switch (work.kind) {
    case HelperWork::Kind::query_job:
        return query_job(services, options.job.value(), in.at(0));
    case HelperWork::Kind::complete:
        return complete_job(services, options.job.value(), number_in<int>(in.at(0)));
    case HelperWork::Kind::notice:
        return notify_elsewhere(services, options, number_in<int>(in.at(0)),
                                notice_from_word(in.at(1)).value_or(Notice::none));
    case HelperWork::Kind::note:
        return note_use(services, options, number_in<std::chrono::milliseconds>(in.at(0)),
                        in.at(1) == "over" ? JobEnd::over : JobEnd::to_come);
    case HelperWork::Kind::submit:
        return submit_next(services, options, number_in<std::chrono::seconds>(in.at(0)));
    case HelperWork::Kind::find_checkpoints:
        return find_checkpoints_again(services, options, parse_checkpoints(in.at(0)));
    case HelperWork::Kind::conclude:
        return packed(conclude(services, options, past_in(in.at(0)).value(),
                               parse_checkpoints(in.at(1)),
                               /*by_itself=*/in.at(2) == "1"));
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
    const auto request = helper_request_in(read_to_the_end(STDIN_FILENO));
    if (!request) {
        return static_cast<int>(ExitStatus::usage);
    }
    options.job = request->job;
    const bool written = write_all(k_helper_answer, result_of(services, options, request->work));
    return static_cast<int>(written ? ExitStatus::success : ExitStatus::internal);
}

} // namespace gpuq::supervisor
