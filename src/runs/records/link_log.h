// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/result.h"
#include "ports/store.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gpuq {

/// The items that a reader of a log gets.
namespace log {
/// Output bytes as the program wrote them.
struct Output {
    Stream stream = Stream::out;
    std::string bytes;
    bool operator==(const Output&) const = default;
};
/// This number of bytes is missing from the log at this position.
struct Gap {
    Stream stream = Stream::out;
    std::uint64_t bytes = 0;
    bool operator==(const Gap&) const = default;
};
/// The file has become shorter than the part already read: it was truncated or replaced. Reported
/// once.
struct Cut {
    Stream stream = Stream::out;
    bool operator==(const Cut&) const = default;
};
/// Nothing more at the moment.
struct Wait {
    /// Bytes exist, but those before them are not visible yet (NFS): retry soon.
    bool held_back = false;
    bool operator==(const Wait&) const = default;
};
/// The end of the log.
struct End {
    bool operator==(const End&) const = default;
};
using Item = std::variant<Output, Gap, Cut, Wait, End>;
} // namespace log

/// Whether more output may follow.
enum class Writer { alive, gone };

/// The log of one link as a single sequence, in the order in which the program wrote to its two
/// streams.
///
/// `out.log` and `err.log` hold the bytes. A line `o BYTES` or `e BYTES` in `order` describes a
/// finished segment and is written before the first byte of the next segment. Bytes beyond those
/// that `order` describes therefore belong to one stream, provided that the sizes were read before
/// `order`. If both streams have such bytes, the file system has returned an old `order`: the
/// reader waits for a newer one for at most `k_patience`, then returns stdout first.
///
/// Memory use does not grow with the log: some hundred KiB. Each read opens the files again.
class LinkLog {
public:
    using Steady = std::chrono::steady_clock::time_point;

    LinkLog(Store& store, RunKey key, LinkNumber link);

    /// The next item. Pass `gone` only if the writer can have written nothing since the last
    /// call. A file system error may be temporary: retry; an error skips no bytes.
    Result<log::Item> next(Writer writer, Steady now);

    /// Skips this many bytes of output, without reading them where the file sizes suffice.
    void pass_over(std::uint64_t bytes) { m_to_pass = bytes; }
    std::uint64_t to_pass() const { return m_to_pass; }
    /// The offset in the stream's file of the next byte to return.
    std::uint64_t offset(Stream stream) const
    {
        return m_sources[static_cast<std::size_t>(stream)].position;
    }

    /// How long inconsistent files may take to become consistent.
    static constexpr std::chrono::milliseconds k_patience{3000};
    /// How long a page of zeros inside a growing file may be a page that has not been written
    /// yet.
    static constexpr std::chrono::milliseconds k_settling{1000};

private:
    struct Source {
        std::string path;
        std::uint64_t position = 0; ///< offset of the next byte to return
        std::uint64_t size = 0;     ///< of the file, as last seen
        std::uint64_t reported = 0; ///< sum of this stream's segments in `order`
        std::uint64_t trusted = 0;  ///< zeros before this offset are the program's own
        std::uint64_t buffer_at = 0;
        std::string buffer;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> lost; ///< from the journal, sorted
        std::optional<Steady> short_since; ///< since when the file is shorter than the part read
        bool was_cut = false;
    };

    Result<void> refresh();
    Result<void> read_journal();
    Result<bool> read_order();
    Result<bool> next_segment();
    Result<std::optional<log::Item>> known(Writer writer, Steady now);
    Result<std::optional<log::Item>> tail(Writer writer, Steady now);
    Result<std::optional<log::Item>> take(Stream stream, std::uint64_t limit, Writer writer,
                                          Steady now);
    Result<std::string_view> bytes_at(Source& source, std::uint64_t end);
    std::size_t settled_part(Source& source, std::string_view bytes, Steady now);
    std::optional<log::Item> cut_file(Writer writer, Steady now);
    bool patience_is_over(Steady now);
    Source& source(Stream stream) { return m_sources[static_cast<std::size_t>(stream)]; }

    Store& m_store;
    RunKey m_key;
    LinkNumber m_link;
    std::array<Source, 2> m_sources;
    std::uint64_t m_to_pass = 0;
    std::optional<Stream> m_segment; ///< segment being returned, up to its stream's sum
    std::uint64_t m_order_at = 0;    ///< offset of the next byte of `order` to read
    std::string m_order;             ///< the part of `order` that was read last
    std::size_t m_order_used = 0;    ///< how much of it has been parsed
    std::uint64_t m_journal_size = 0;
    std::optional<Steady> m_inconsistent_since;
    std::optional<Steady> m_settling_since;
    bool m_held_back = false;
};

} // namespace gpuq
