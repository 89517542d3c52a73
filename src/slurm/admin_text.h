// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Converts the output of scontrol and squeue to objects, and objects to arguments; pure.
namespace gpuq::slurm {

/// `scontrol show config`: all settings.
std::vector<SlurmObject> settings_in(std::string_view printed);

/// `scontrol -o show partition`. Only fields that all releases from 22.05 to 26.05 print, if they
/// differ from a partition's defaults.
std::vector<SlurmObject> partitions_in(std::string_view printed);

/// `scontrol -o show node`
std::vector<std::string> nodes_in(std::string_view printed);

/// The same: nodes with GPUs.
std::vector<std::string> gpu_nodes_in(std::string_view printed);
/// ThreadsPerCore of each node.
std::map<std::string, int> threads_in(std::string_view printed);

/// `scontrol -o show reservation`
std::vector<SlurmObject> reservations_in(std::string_view printed);

/// The arguments after `scontrol update reservationname=` that change `actual` to `desired`, as far
/// as an update can: fields that are only set by hand stay. If `actual` is empty, they create a new
/// one.
std::vector<std::string> reservation_arguments(const SlurmObject& actual,
                                               const SlurmObject& desired);

/// `squeue -h -a -o "%P|%V"`
std::vector<QueuedJob> jobs_in(std::string_view printed);

/// The jobs that may run longer than the time of their partition, each with that time.
/// `squeue -h -a -t R -o "%A|%P|%L"`: the id, the partition in which it runs, and the time left.
std::map<std::string, std::chrono::seconds>
running_longer(const std::map<std::string, std::chrono::seconds>& time_left,
               std::string_view printed);

/// Fields of partitions and nodes that no object has, if they differ from Slurm's defaults.
std::vector<std::string> other_partition_fields_in(std::string_view printed);
std::vector<std::string> other_node_fields_in(std::string_view printed);

} // namespace gpuq::slurm
