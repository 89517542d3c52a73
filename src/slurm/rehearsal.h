// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <filesystem>
#include <functional>
#include <string>

namespace gpuq::slurm {

/// What a rehearsal's configuration is made of.
struct Rehearsal {
    std::string folder; ///< its own
    std::string host;   ///< this machine's name
    int port = 0;       ///< nobody's
    std::string qos;    ///< text in which the names stand of the QOS that accounting's cache has
};

/// A slurm.conf in one piece, for a slurmctld that reaches nobody: `text` with what it includes
/// (`included` gives the texts), every node and slurmdbd at a port where nobody listens, no program
/// that anything would start, all files in a folder of its own. Partitions keep the QOS that are
/// in `qos`; those that were made a moment ago are not.
std::string rehearsal_conf(const std::string& text,
                           const std::function<std::string(const std::string&)>& included,
                           const Rehearsal& rehearsal);

/// Where the cache of accounting is kept: StateSaveLocation, of such a text.
std::string value_in(const std::string& conf, const std::string& key);

/// Starts slurmctld on `conf` with `include` in the place of the file `include_path`, and with
/// `script`; ends it as soon as it has read all. `usage` with its words when it would not live;
/// `denied` when the cache of accounting can't be read, which is for root and SlurmUser.
Result<void> rehearse(const std::filesystem::path& conf, const std::string& include_path,
                      const std::string& include, const std::string& script);

} // namespace gpuq::slurm
