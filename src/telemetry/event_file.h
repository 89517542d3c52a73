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

/// Reads the scalars out of a TensorBoard event file (`*tfevents*`), in pieces as they come: a
/// file that is still written ends in the middle of a record, and goes on there. Nothing else of it
/// is read: no images, histograms or graphs.
///
/// What has a wrong checksum is skipped and counted: the next record is searched for behind it. The
/// memory it takes does not grow with the file.
class EventFile {
public:
    /// No record is longer: a length beyond it is damage.
    static constexpr std::uint64_t k_longest_record = 64ULL << 20;
    /// A longer one has an image or a graph, which is checked and passed over.
    static constexpr std::uint64_t k_longest_read = 1ULL << 20;

    /// The bytes that follow those before; their scalars go to `curves`.
    void feed(std::string_view bytes, Curves& curves);

    /// Bytes are left out here: the next piece is searched for the beginning of a record.
    void skip(std::uint64_t bytes);

    /// Where the first record begins that is not read yet.
    std::uint64_t offset() const { return m_offset; }
    std::uint64_t records() const { return m_records; }
    /// Skipped: damage, no event, or a time that is none.
    std::uint64_t bad_records() const { return m_bad_records; }
    /// Skipped because a checksum is wrong.
    std::uint64_t damaged_bytes() const { return m_damaged_bytes; }

    /// One of an event's, as it stands in the record.
    struct Value {
        std::string_view tag;
        std::optional<double> simple;
        std::string_view tensor;
        bool has_tensor = false;
        bool says_scalar = false; ///< by the plugin that made it
    };

private:
    /// How many of `bytes`, which begin where the newest whole record ended, were used up.
    std::size_t take(std::string_view bytes, Curves& curves);
    std::size_t take_held(std::string_view bytes, Curves& curves);
    std::size_t pass_over(std::string_view bytes);
    /// How many of `bytes` are no record, or held, since one may begin there.
    std::size_t search(std::string_view bytes);
    std::size_t leave_out(std::size_t bytes);
    bool read_event(std::string_view data, Curves& curves);
    std::optional<double> number_of(const Value& value);

    std::string m_held; ///< the beginning of a record, or of a checksum, that is not all there
    std::set<std::string, std::less<>> m_scalar_tags; ///< their first value says so, and no other
    std::uint64_t m_offset = 0;
    std::uint64_t m_records = 0;
    std::uint64_t m_bad_records = 0;
    std::uint64_t m_damaged_bytes = 0;
    bool m_is_searching = false;
    bool m_is_damage = false; ///< what is searched, else it was left out
    struct Passing {
        std::uint64_t length = 0;
        std::uint64_t passed = 0;
        std::uint32_t crc = 0;
    };
    std::optional<Passing> m_passing; ///< a long record, of which only the checksum is read
};

} // namespace gpuq::telemetry
