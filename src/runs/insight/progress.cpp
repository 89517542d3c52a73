// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/progress.h"

#include "core/layout.h"
#include "runs/records/link_log.h"
#include "runs/records/log_times.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gpuq {

namespace {

constexpr std::uint64_t k_most = 64 << 10;   ///< of a stream's beginning and end
constexpr std::uint64_t k_whole = 512 << 10; ///< a log up to this size is read completely
constexpr std::uint64_t k_most_of_file = 8 << 20;
constexpr std::size_t k_piece = 1 << 20;                   ///< of a file, read at once
constexpr int k_most_earlier = 32;                         ///< links
constexpr std::size_t k_most_runs = 16;                    ///< whose earlier curves are kept
constexpr Stream k_streams[] = {Stream::err, Stream::out}; ///< bars before the values in them

std::uint64_t size_of(Store& store, const std::string& log)
{
    const auto size = store.size(log);
    return size ? *size : 0;
}

/// Gives a reader the output of a link, with the times at which it was written.
class TimedOutput {
public:
    TimedOutput(Store& store, const RunKey& key, LinkNumber link)
        : m_marks{LogTimes(store, key, link, Stream::out).next(),
                  LogTimes(store, key, link, Stream::err).next()}
    {
    }

    /// `offset`: of the bytes in the stream's file.
    void feed(telemetry::OutputReader& reader, Stream stream, std::uint64_t offset,
              std::string_view bytes) const
    {
        while (!bytes.empty()) {
            const auto part =
                LogTimes::part_from(offset, m_marks.at(static_cast<std::size_t>(stream)));
            const auto size = std::min<std::uint64_t>(part.end - offset, bytes.size());
            reader.feed(bytes.substr(0, size), part.at);
            bytes.remove_prefix(size);
            offset += size;
        }
    }

private:
    std::array<std::vector<LogTimes::Mark>, 2> m_marks; ///< by index of Stream
};

/// Reads both streams in the order in which they were written: trainers draw a bar on one and print
/// the loss on the other.
telemetry::OutputReader read_whole(Store& store, const RunKey& key, LinkNumber link,
                                   const telemetry::Pattern* own, const TimedOutput& timed)
{
    telemetry::OutputReader reader(own);
    LinkLog log(store, key, link);
    LinkLog::Steady now;
    std::optional<Stream> stream;
    std::uint64_t bytes = 0; // limit: a program may write faster than this reads
    for (bool is_patient = true; bytes < 2 * k_whole;) {
        const auto item = log.next(Writer::gone, now);
        const auto* const output = item ? std::get_if<log::Output>(&*item) : nullptr;
        if (output != nullptr) {
            if (stream && *stream != output->stream) {
                reader.end_line();
            }
            stream = output->stream;
            timed.feed(reader, output->stream, log.offset(output->stream) - output->bytes.size(),
                       output->bytes);
            bytes += output->bytes.size();
        } else if (item && std::holds_alternative<log::Wait>(*item) && is_patient) {
            is_patient = false; // then read the bytes without waiting for the order
            now += 2 * LinkLog::k_patience;
        } else if (!item || std::holds_alternative<log::Wait>(*item) ||
                   std::holds_alternative<log::End>(*item)) {
            break;
        }
    }
    reader.end_line();
    return reader;
}

} // namespace

LinkProgress read_progress(Store& store, const RunKey& key, LinkNumber link,
                           const telemetry::Pattern* own)
{
    std::uint64_t bytes = 0;
    for (const Stream stream : k_streams) {
        bytes += size_of(store, layout::log(key, link, stream));
    }
    const TimedOutput timed(store, key, link);
    if (bytes <= k_whole) {
        const auto whole = read_whole(store, key, link, own, timed);
        return {whole.first(), whole.last(),   whole.began(),
                whole.bar(),   whole.curves(), std::nullopt};
    }
    telemetry::OutputReader begin(own);
    telemetry::OutputReader end(own);
    for (const Stream stream : k_streams) {
        const std::string log = layout::log(key, link, stream);
        const std::uint64_t size = size_of(store, log);
        const std::uint64_t from = size > k_most ? size - k_most : 0;
        const auto head = store.read_at(log, 0, k_most);
        const auto tail = store.read_at(log, from, k_most);
        timed.feed(begin, stream, 0, head ? *head : "");
        begin.end_line();
        timed.feed(end, stream, from, tail ? *tail : "");
        end.end_line();
    }
    return {begin.first(), end.last(), begin.began(), end.bar(), end.curves(), std::nullopt};
}

const telemetry::Curves& EarlierCurves::before(Store& store, const RunKey& key, LinkNumber link,
                                               const telemetry::Pattern* own)
{
    if (m_kept.size() >= k_most_runs && !m_kept.contains(key.text())) {
        m_kept.clear();
    }
    Kept& kept = m_kept[key.text()];
    if (link < kept.link) { // the newest one has no output any more
        kept = {};
    }
    kept.link = std::max(kept.link, LinkNumber{link.value - k_most_earlier});
    for (; kept.link < link; ++kept.link.value) {
        kept.curves.add(read_progress(store, key, kept.link, own).curves);
    }
    return kept.curves;
}

LinkProgress read_progress(Store& store, const std::string& path, const telemetry::Pattern* own)
{
    const std::uint64_t size = size_of(store, path);
    std::uint64_t offset = size > k_most_of_file ? size - k_most_of_file : 0;
    telemetry::OutputReader reader(own);
    for (auto piece = store.read_at(path, offset, k_piece); piece && !piece->empty();
         piece = store.read_at(path, offset, k_piece)) {
        reader.feed(*piece);
        offset += piece->size();
    }
    reader.end_line();
    return {reader.first(), reader.last(),   reader.began(),
            reader.bar(),   reader.curves(), std::nullopt};
}

std::optional<telemetry::Pattern> own_pattern(const Run& run)
{
    std::optional<std::string> text;
    for (const std::string& variable : run.environment) {
        if (variable.starts_with(std::string(k_progress_variable) + "=")) {
            text = variable.substr(k_progress_variable.size() + 1);
        }
    }
    for (const auto& [name, value] : run.request.setup.env) {
        text = name == k_progress_variable ? std::optional(value) : text;
    }
    auto pattern = telemetry::Pattern::compile(text.value_or(""));
    return pattern ? std::optional(*std::move(pattern)) : std::nullopt;
}

} // namespace gpuq
