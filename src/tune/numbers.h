// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "policy/policy.h"
#include "sim/trace.h"
#include "tune/search.h"
#include "yaml/replace.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::tune {

/// A number in a policy file that a search may change.
struct Number {
    std::string path; ///< `queues.long.limits.user.gpus`; `pools.first.nodes`: how many
    int line = 0;
    int column = 0;                   ///< of the scalar
    std::vector<std::string> choices; ///< ascending, as they are written; of nodes their number
    std::size_t now = 0;              ///< index of the value in the file
};

/// Pools whose nodes are alike, so that a node may move from one to another. The sizes of all but
/// the largest pool are numbers; the largest has the rest.
struct Exchange {
    struct Member {
        std::string pool;
        int line = 0;
        int column = 0;
        std::vector<std::string> nodes;
        std::size_t number = 0; ///< index in Numbers::all; unused by the rest
    };
    std::vector<Member> members; ///< the largest one last
};

struct Numbers {
    std::vector<Number> all;
    std::vector<Exchange> exchanges;

    Space space() const;
};

/// Which numbers may change: paths, or beginnings of paths (`queues.long`).
struct Selection {
    std::vector<std::string> only;  ///< empty: all that are tuned by default
    std::vector<std::string> fixed; ///< none of these
};

/// The numbers of a valid policy that the simulation takes into account with this trace, with
/// their bounds: a quarter to four times their value. By default: nodes of pools without an owner
/// who alone may use them, times of queues, limits on GPUs and jobs, `min_run` and `half_life`.
/// Only if they are selected: shares and weights, which are agreements, and `grace`, because the
/// simulation does not know how long programs need to save. Limits per user need a trace with
/// users. `usage` for a selected path that is unknown.
Result<Numbers> numbers_of(const policy::Policy& policy, std::string_view text,
                           const sim::Trace& trace, const Selection& selection);

/// One scalar that differs from the file.
struct Change {
    std::string path;
    int line = 0;
    std::string from;
    std::string to;

    bool operator==(const Change&) const = default;
};

/// The changes of the file that a point means; nothing if a pool would have no nodes left.
struct Changes {
    std::vector<Change> list;
    std::vector<yaml::Replacement> replacements;
};
std::optional<Changes> changes_of(const Numbers& numbers, const Point& point);

} // namespace gpuq::tune
