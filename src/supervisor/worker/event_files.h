// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "io/event_loop.h"
#include "ports/files.h"
#include "sweeps/metric.h"
#include "telemetry/event_file.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// The TensorBoard event files below the working directory of all tries of a worker. The directory
/// may be large, or on a slow file system: searches take at most 1 % of the time.
class EventListing {
public:
    using Moment = EventLoop::Moment;

    /// Files modified since then. `files` must outlive the object.
    EventListing(Files& files, std::string directory, Time since)
        : m_files(files)
        , m_directory(std::move(directory))
        , m_since(since)
    {
    }

    /// Searches again, if it is time. Returns the number of searches.
    int refresh(Moment now);
    const std::vector<std::string>& paths() const { return m_paths; }
    const std::string& directory() const { return m_directory; }
    Files& files() const { return m_files; }
    /// The next search is at `begun + 100 * (ended - begun)` at the earliest.
    void note_search(Moment begun, Moment ended);

private:
    Files& m_files;
    std::string m_directory;
    Time m_since;
    std::vector<std::string> m_paths;
    Moment m_next{};
    int m_searches = 0;
};

/// The process that writes event files.
struct EventWriter {
    std::string checkpoint_dir; ///< that of the try: all files in it are its own
    std::string run_id;         ///< GPUQ_RUN_ID, in the environment of all its processes
    pid_t pid = 0;
    Time since; ///< when it was started
};

/// The curves in the TensorBoard event files that a try writes. Several tries may write below the
/// same directory: there, files are told apart by the host and process in their names
/// (`events.out.tfevents.TIME.HOST.PID...`), as torch.utils.tensorboard and TensorFlow name them.
class EventFiles {
public:
    /// `listing` must outlive the object.
    EventFiles(EventListing& listing, EventWriter writer)
        : m_listing(listing)
        , m_writer(std::move(writer))
    {
    }

    /// Finds its files among those listed, and reads what has been added to them.
    void read(EventListing::Moment now);
    /// Of several directories that have the metric, the first one by name. Null: none.
    const telemetry::Series* curve(const sweeps::Metric& metric) const;

private:
    struct Known {
        std::string directory, path;
        std::uint64_t offset = 0;
        telemetry::EventFile reader = {};
    };
    void note(const std::string& directory, const std::string& path);
    bool is_writers(std::string_view name) const;
    void read_new(Known& file);

    EventListing& m_listing;
    EventWriter m_writer;
    int m_searches = 0; ///< of the listing, when its paths were looked at
    std::vector<Known> m_known;
    std::map<std::string, telemetry::Curves> m_curves; ///< by the directory of the files
};

} // namespace gpuq::supervisor
