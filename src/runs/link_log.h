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

/// What a reader of a log gets, one at a time.
namespace log {
/// Bytes of the program, as it wrote them.
struct Output {
    Stream stream = Stream::out;
    std::string bytes;
    bool operator==(const Output&) const = default;
};
/// So many bytes stood here and are not in the log.
struct Gap {
    Stream stream = Stream::out;
    std::uint64_t bytes = 0;
    bool operator==(const Gap&) const = default;
};
/// The file has become shorter than what was read from it: somebody cut or replaced it. Once.
struct Cut {
    Stream stream = Stream::out;
    bool operator==(const Cut&) const = default;
};
/// Nothing more at this moment.
struct Wait {
    /// There are bytes, but what they follow is not seen yet (NFS): ask again soon.
    bool held_back = false;
    bool operator==(const Wait&) const = default;
};
/// That was all.
struct End {
    bool operator==(const End&) const = default;
};
using Item = std::variant<Output, Gap, Cut, Wait, End>;
} // namespace log

/// Whether more may come.
enum class Writer { alive, gone };

/// The log of one link as one sequence, in the order in which the program wrote to its two streams.
///
/// `out.log` and `err.log` hold the bytes; a line `o BYTES` or `e BYTES` of `order` tells of a
/// finished segment, and is there before the first byte of the next. So bytes beyond what `order`
/// tells belong to one stream, if the sizes were read before `order`. When both streams have such
/// bytes, the file system shows an old `order`: the reader waits for it, but no longer than
/// `k_patience`, then gives stdout first.
///
/// Memory does not grow with the log: some hundred KiB. Every look opens the files anew.
class LinkLog {
public:
    using Steady = std::chrono::steady_clock::time_point;

    LinkLog(Store& store, RunKey key, LinkNumber link);

    /// The next item. `gone` only when the writer can have written nothing since. An error of the
    /// file system may be gone at the next try; nothing is skipped by it.
    Result<log::Item> next(Writer writer, Steady now);

    /// The next so many bytes of output are not given, nor read where the files tell enough.
    void pass_over(std::uint64_t bytes) { m_to_pass = bytes; }
    std::uint64_t to_pass() const { return m_to_pass; }

    /// How long inconsistent files are given to become consistent.
    static constexpr std::chrono::milliseconds k_patience{3000};
    /// How long a page of zeros at the end of a growing file may be one that is not written yet.
    static constexpr std::chrono::milliseconds k_settling{1000};

private:
    struct Source {
        std::string path;
        std::uint64_t position = 0; ///< of the next byte to give
        std::uint64_t size = 0;     ///< of the file, when last seen
        std::uint64_t told = 0;     ///< sum of this stream's segments in `order`
        std::uint64_t trusted = 0;  ///< up to here zeros are the program's own
        std::uint64_t buffer_at = 0;
        std::string buffer;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> lost; ///< from the journal, sorted
        std::optional<Steady> short_since; ///< the file is shorter than what was read from it
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
    std::optional<Stream> m_segment; ///< being given, up to that stream's `told`
    std::uint64_t m_order_at = 0;    ///< of the next byte of `order` to read
    std::string m_order;             ///< what was read of it last
    std::size_t m_order_used = 0;    ///< so much of that is parsed
    std::uint64_t m_journal_size = 0;
    std::optional<Steady> m_inconsistent_since;
    std::optional<Steady> m_settling_since;
    bool m_held_back = false;
};

} // namespace gpuq
