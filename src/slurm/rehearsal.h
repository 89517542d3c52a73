// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <filesystem>
#include <functional>
#include <string>

namespace gpuq::slurm {

/// The parameters of a rehearsal's configuration.
struct Rehearsal {
    std::string directory; ///< its own directory, for all files
    std::string host;      ///< name of this machine
    int port = 0;          ///< an unused port
    std::string qos;       ///< text that contains the names of the QOS in the cache of accounting
};

/// A slurm.conf in one piece, for a slurmctld that contacts no other process: `text` with the files
/// it includes (`included` returns their texts), every node and slurmdbd at a port without a
/// listener, no programs to start, and all files in its own directory. Partitions keep the QOS that
/// are in `qos`; QOS created a moment ago are not.
std::string rehearsal_conf(const std::string& text,
                           const std::function<std::string(const std::string&)>& included,
                           const Rehearsal& rehearsal);

/// The value of a key in such a text, e.g. StateSaveLocation, where the cache of accounting is
/// kept.
std::string value_in(const std::string& conf, const std::string& key);

/// Starts slurmctld on `conf`, with `include` in place of the file `include_path`, and with
/// `script`; ends it as soon as it has read everything. `usage` with its messages if it does not
/// stay up; `denied` if the cache of accounting can't be read, which requires root or SlurmUser.
Result<void> rehearse(const std::filesystem::path& conf, const std::string& include_path,
                      const std::string& include, const std::string& script);

} // namespace gpuq::slurm
