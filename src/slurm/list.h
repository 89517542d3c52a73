// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "slurm/compat.h"

#include <memory>
#include <string>
#include <type_traits>

namespace gpuq::slurm {

struct FreeList {
    void operator()(std::remove_pointer_t<List>* list) const { slurm_list_destroy(list); }
};
/// A list from slurmdbd, or one for a request to it.
using OwnedList = std::unique_ptr<std::remove_pointer_t<List>, FreeList>;

template <typename Record, typename Visit>
void for_each(List list, const Visit& visit)
{
    auto* const iterator = slurm_list_iterator_create(list);
    while (const void* item = slurm_list_next(iterator)) {
        visit(*static_cast<const Record*>(item));
    }
    slurm_list_iterator_destroy(iterator);
}

/// `unreachable` if this Slurm has no accounting.
Result<void> needs_accounting();

} // namespace gpuq::slurm
