// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/end_job.h"

#include "cli/client/step_messages.h"
#include "core/layout.h"
#include "ports/cluster.h"
#include "runs/connect_keys.h"
#include "runs/records/record.h"

namespace gpuq::cli {

Ending never_started(std::string_view messages, Time now)
{
    return {static_cast<int>(ExitStatus::internal), Cause::not_started, srun_message(messages),
            now};
}

Ending lost_with_login(Time now)
{
    return {static_cast<int>(ExitStatus::lost), Cause::lost,
            "its step was ended together with the processes of the login, within the first seconds",
            now};
}

bool end_job(Services& services, const Run& run, JobId job, const Ending& ending)
{
    const auto cluster = services.cluster();
    const auto store = services.store();
    if (!cluster || !(*cluster)->complete(job, ending.status) || !store ||
        !(*store)->write_once(layout::ended_json(run.key), to_json(ending))) {
        return false;
    }
    forget_active(**store, run.key);
    return true;
}

} // namespace gpuq::cli
