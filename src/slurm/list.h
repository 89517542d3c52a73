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
/// A list of slurmdbd's, or one for a question to it.
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

/// `unreachable` when this Slurm keeps no accounting.
Result<void> needs_accounting();

/// What `error CODE`, or nothing at all, from a child that asked slurmdbd means.
Error no_accounting_answer(const std::string& answer);

} // namespace gpuq::slurm
