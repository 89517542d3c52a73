// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/event_files.h"

#include "supervisor/base/process_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view k_mark = "tfevents.";
constexpr auto k_clocks = 1min;          ///< between this host and a file server
constexpr std::size_t k_piece = 1 << 20; ///< of a file, read at once
constexpr int k_most_pieces = 8;         ///< of a file in one call

/// Takes a number and the dot behind it from the beginning of a name.
template <typename Number>
std::optional<Number> take_number(std::string_view& rest)
{
    Number number{};
    const auto [end, error] = std::from_chars(rest.begin(), rest.end(), number);
    if (error != std::errc{}) {
        return std::nullopt;
    }
    rest.remove_prefix(static_cast<std::size_t>(end - rest.begin()));
    rest.remove_prefix(rest.starts_with('.') ? 1 : 0);
    return number;
}

bool is_event_file(std::string_view name)
{
    return name.find(k_mark) != name.npos;
}

std::string_view name_in(std::string_view path)
{
    return path.substr(path.rfind('/') + 1);
}

/// What follows the time in the name of an event file that was begun since then.
std::optional<std::string_view> begun_since(std::string_view name, Time since)
{
    const auto at = name.find(k_mark);
    std::string_view rest = at == name.npos ? "" : name.substr(at + k_mark.size());
    const auto seconds = take_number<std::int64_t>(rest);
    return seconds && *seconds >=
                          std::chrono::floor<std::chrono::seconds>(since.time_since_epoch()).count()
               ? std::optional(rest)
               : std::nullopt;
}

std::string host_name()
{
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

} // namespace

int EventListing::refresh(Moment now)
{
    if (now < m_next) {
        return m_searches;
    }
    const auto begun = EventLoop::Clock::now();
    const auto found = m_files.changed_since(m_directory, m_since - k_clocks, is_event_file);
    m_paths.clear();
    for (const Files::File& file : found ? *found : std::vector<Files::File>()) {
        m_paths.push_back(file.path);
    }
    note_search(begun, EventLoop::Clock::now());
    return ++m_searches;
}

void EventListing::note_search(Moment begun, Moment ended)
{
    constexpr int k_part = 100;
    m_next = begun + k_part * (ended - begun);
}

void EventFiles::read(EventListing::Moment now)
{
    if (const int searches = m_listing.refresh(now); searches != m_searches) {
        m_searches = searches;
        const auto own = m_listing.files().changed_since(m_writer.checkpoint_dir,
                                                         m_writer.since - k_clocks, is_event_file);
        for (const Files::File& file : own ? *own : std::vector<Files::File>()) {
            if (begun_since(name_in(file.path), m_writer.since)) {
                note(m_writer.checkpoint_dir, file.path);
            }
        }
        for (const std::string& path : m_listing.paths()) {
            if (is_writers(name_in(path))) {
                note(m_listing.directory(), path);
            }
        }
    }
    for (Known& file : m_known) {
        read_new(file);
    }
}

void EventFiles::note(const std::string& directory, const std::string& path)
{
    const auto is_it = [&](const Known& known) {
        return known.directory == directory && known.path == path;
    };
    if (std::none_of(m_known.begin(), m_known.end(), is_it)) {
        m_known.push_back({directory, path});
    }
}

bool EventFiles::is_writers(std::string_view name) const
{
    auto rest = begun_since(name, m_writer.since);
    const std::string host = host_name() + ".";
    if (!rest || !rest->starts_with(host)) {
        return false;
    }
    rest->remove_prefix(host.size());
    const auto pid = take_number<pid_t>(*rest);
    return pid && (*pid == m_writer.pid || variable_of(*pid, "GPUQ_RUN_ID") == m_writer.run_id);
}

void EventFiles::read_new(Known& file)
{
    const auto slash = file.path.rfind('/');
    const std::string below = slash == file.path.npos ? "" : file.path.substr(0, slash);
    telemetry::Curves& curves = m_curves[file.directory + "/" + below];
    for (int piece = 0; piece < k_most_pieces; ++piece) {
        const auto bytes =
            m_listing.files().read_at(file.directory, file.path, file.offset, k_piece);
        if (!bytes || bytes->empty()) {
            return;
        }
        file.reader.feed(*bytes, curves);
        file.offset += bytes->size();
    }
}

const telemetry::Series* EventFiles::curve(const sweeps::Metric& metric) const
{
    for (const auto& [directory, curves] : m_curves) {
        if (const auto* const series = sweeps::series_of(curves, metric)) {
            return series;
        }
    }
    return nullptr;
}

} // namespace gpuq::supervisor
