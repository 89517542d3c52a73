// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/helper.h"
#include "supervisor/base/loop.h"

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::supervisor {

/// Operations of an executed helper, one at a time and each with a time limit, for which the loop
/// does not wait.
class HelperCall {
public:
    /// The references must outlive the object.
    HelperCall(Loop& loop, const Options& options)
        : m_loop(loop)
        , m_options(options)
    {
    }
    HelperCall(const HelperCall&) = delete;
    HelperCall& operator=(const HelperCall&) = delete;
    ~HelperCall() { drop(); }

    /// Starts `work` unless an operation is in progress. False if no helper could be started.
    bool start(const HelperWork& work, std::chrono::milliseconds patience);
    bool in_progress() const { return m_helper.has_value(); }
    /// Call in each round. Returns the helper's answer once it is complete, and after the time
    /// limit the part of it that has arrived. Otherwise wakes the loop at that time.
    std::optional<std::string> take();
    /// Ends an operation without its answer.
    void drop();
    /// The helper process, which does not belong to the program.
    std::optional<pid_t> pid() const;

private:
    std::string end();

    Loop& m_loop;
    const Options& m_options;
    std::optional<Helper> m_helper;
    Loop::Watch m_watch;
    bool m_complete = false;
    Loop::Steady m_until;
};

} // namespace gpuq::supervisor
