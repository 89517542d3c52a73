// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/series.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace gpuq::telemetry {

/// Reads the scalars from a TensorBoard event file (`*tfevents*`), piece by piece: a file that is
/// still being written ends in the middle of a record and continues later. All other data is
/// ignored: images, histograms, graphs.
///
/// Data with a wrong checksum is skipped and counted, and reading continues at the next valid
/// record. Memory use does not grow with the file, and the time is proportional to its length: if
/// damaged records overlap too often, they are skipped as a whole.
class EventFile {
public:
    /// Maximum length of a record: a larger number means damage.
    static constexpr std::uint64_t k_longest_record = 64ULL << 20;
    /// A longer record contains an image or a graph: it is checked and skipped.
    static constexpr std::uint64_t k_longest_read = 1ULL << 20;

    /// Processes the next bytes; scalars are added to `curves`.
    void feed(std::string_view bytes, Curves& curves);

    /// Skips bytes of the file: the beginning of a record is searched for in the next piece.
    void skip(std::uint64_t bytes);

    /// The offset of the first record that has not been read.
    std::uint64_t offset() const { return m_offset; }
    std::uint64_t records() const { return m_records; }
    /// Number of skipped records: damaged, not an event, or without a valid time.
    std::uint64_t bad_records() const { return m_bad_records; }
    /// Number of bytes skipped because of a wrong checksum.
    std::uint64_t damaged_bytes() const { return m_damaged_bytes; }

    /// One value of an event, as encoded in the record.
    struct Value {
        std::string_view tag;
        std::optional<double> simple;
        std::string_view tensor;
        bool has_tensor = false;
        bool is_scalar = false; ///< according to the plugin that wrote it
    };

private:
    /// Returns how many of `bytes`, which begin at the end of the last complete record, were used.
    std::size_t take(std::string_view bytes, Curves& curves);
    std::size_t take_held(std::string_view bytes, Curves& curves);
    std::size_t pass_over(std::string_view bytes);
    /// Returns how many of `bytes` were skipped, or held because a record may begin in them.
    std::size_t search(std::string_view bytes);
    std::size_t leave_out(std::size_t bytes);
    bool read_event(std::string_view data, Curves& curves);
    std::optional<double> number_of(const Value& value);

    std::string m_held;                               ///< an incomplete record or checksum
    std::set<std::string, std::less<>> m_scalar_tags; ///< known from their first value
    std::uint64_t m_offset = 0;
    std::uint64_t m_records = 0;
    std::uint64_t m_bad_records = 0;
    std::uint64_t m_damaged_bytes = 0;
    std::uint64_t m_left_out = 0;        ///< bytes left out by skip()
    std::uint64_t m_checked_in_vain = 0; ///< bytes of records with a wrong checksum
    bool m_is_searching = false;
    bool m_is_damage = false; ///< the searched bytes are damaged, not skipped by the caller
    struct Passing {
        std::uint64_t length = 0;
        std::uint64_t passed = 0;
        std::uint32_t crc = 0;
    };
    std::optional<Passing> m_passing; ///< a long record, of which only the checksum is verified
};

} // namespace gpuq::telemetry
