// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/finding_list.h"

#include "core/nearest.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::policy {

void FindingList::expect_known(const std::string& name, const std::vector<std::string>& known,
                               std::string_view what, Place place)
{
    if (std::find(known.begin(), known.end(), name) == known.end()) {
        error(place, "unknown-name",
              fmt::format("there is no {} '{}'{}", what, name, did_you_mean(name, known)));
    }
}

} // namespace gpuq::policy
