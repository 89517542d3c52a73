// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/event_file.h"

#include "telemetry/crc32c.h"
#include "telemetry/protobuf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace gpuq::telemetry {
namespace {

using Kind = Field::Kind;

constexpr std::size_t k_header = 12; ///< a length and its checksum
constexpr std::size_t k_checksum = 4;
constexpr std::size_t k_most_scalar_tags = 4096;
/// Times that each byte may be part of a damaged record: a crafted file could begin such a record
/// every 12 bytes.
constexpr std::uint64_t k_most_checks = 4;

template <typename Number>
Number number_at(std::string_view bytes, std::size_t at)
{
    static_assert(std::endian::native == std::endian::little);
    Number number = 0;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    return number;
}

/// The length of a record, from its header. Nothing if the header is damaged.
std::optional<std::uint64_t> length_in(std::string_view header)
{
    const auto length = number_at<std::uint64_t>(header, 0);
    const bool is_sound =
        masked(crc32c(header.substr(0, 8))) == number_at<std::uint32_t>(header, 8);
    return is_sound && length <= EventFile::k_longest_record ? std::optional(length) : std::nullopt;
}

/// Nothing if the number is not a time in years of four digits.
std::optional<Time> time_of(double seconds)
{
    constexpr double k_last = 253'402'300'799;
    if (!(seconds >= 0 && seconds <= k_last)) {
        return std::nullopt;
    }
    return Time(std::chrono::microseconds(std::llround(seconds * 1e6)));
}

/// SummaryMetadata: plugin_data.plugin_name.
bool names_scalars(std::string_view metadata)
{
    bool found = false;
    Message message(metadata);
    Field field;
    while (message.next(field)) {
        if (!field.is(1, Kind::bytes)) {
            continue;
        }
        Message plugin(field.bytes);
        Field part;
        while (plugin.next(part)) {
            found = found || (part.is(1, Kind::bytes) && part.bytes == "scalars");
        }
    }
    return found;
}

using Value = EventFile::Value;

std::optional<Value> value_in(std::string_view bytes)
{
    Value value;
    Message message(bytes);
    Field field;
    while (message.next(field)) {
        if (field.is(1, Kind::bytes)) {
            value.tag = field.bytes;
        } else if (field.is(2, Kind::fixed32)) {
            value.simple = field.as_float();
        } else if (field.is(8, Kind::bytes)) {
            value.tensor = field.bytes;
            value.has_tensor = true;
        } else if (field.is(9, Kind::bytes)) {
            value.is_scalar = names_scalars(field.bytes);
        }
    }
    return message.is_sound() ? std::optional(value) : std::nullopt;
}

/// The value of a tensor of rank 0. TensorProto: 1 dtype, 2 shape, 4 tensor_content, 5 float_val, 6
/// double_val.
std::optional<double> scalar_in(std::string_view tensor)
{
    constexpr std::uint64_t k_float = 1;
    constexpr std::uint64_t k_double = 2;
    std::uint64_t type = 0;
    std::string_view content;
    std::optional<double> single;
    bool has_rank = false;
    Message message(tensor);
    Field field;
    while (message.next(field)) {
        if (field.is(1, Kind::varint)) {
            type = field.value;
        } else if (field.is(2, Kind::bytes)) {
            Message shape(field.bytes);
            Field part;
            while (shape.next(part)) {
                has_rank = has_rank || part.number == 2;
            }
        } else if (field.is(4, Kind::bytes)) {
            content = field.bytes;
        } else if (field.is(5, Kind::fixed32)) {
            single = field.as_float();
        } else if (field.is(5, Kind::bytes) && field.bytes.size() == sizeof(float)) {
            single = number_at<float>(field.bytes, 0);
        } else if (field.is(6, Kind::fixed64)) {
            single = field.as_double();
        } else if (field.is(6, Kind::bytes) && field.bytes.size() == sizeof(double)) {
            single = number_at<double>(field.bytes, 0);
        }
    }
    if (!message.is_sound() || has_rank || (type != k_float && type != k_double)) {
        return std::nullopt;
    }
    if (type == k_float && content.size() == sizeof(float)) {
        return number_at<float>(content, 0);
    }
    if (type == k_double && content.size() == sizeof(double)) {
        return number_at<double>(content, 0);
    }
    return single;
}

struct Event {
    std::optional<Time> at;
    std::int64_t step = 0;
    std::string_view summary; ///< the encoded Summary
};

/// Nothing for an invalid event or one without a time.
std::optional<Event> event_in(std::string_view data)
{
    Event event;
    Message message(data);
    Field field;
    while (message.next(field)) {
        if (field.is(1, Kind::fixed64)) {
            event.at = time_of(field.as_double());
        } else if (field.is(2, Kind::varint)) {
            event.step = static_cast<std::int64_t>(field.value);
        } else if (field.is(5, Kind::bytes)) {
            event.summary = field.bytes;
        }
    }
    return message.is_sound() && event.at ? std::optional(event) : std::nullopt;
}

} // namespace

void EventFile::feed(std::string_view bytes, Curves& curves)
{
    while (!bytes.empty()) {
        if (m_is_searching && !m_held.empty()) { // a header may span the two pieces
            const std::string joined = std::exchange(m_held, {}).append(bytes);
            feed(joined, curves);
            return;
        }
        std::size_t used = 0;
        if (m_is_searching) {
            used = search(bytes);
        } else if (m_passing) {
            used = pass_over(bytes);
        } else if (m_held.empty()) {
            used = take(bytes, curves);
            if (used == 0) { // an incomplete record
                m_held = bytes;
                return;
            }
        } else {
            used = take_held(bytes, curves);
        }
        bytes.remove_prefix(used);
    }
}

void EventFile::skip(std::uint64_t bytes)
{
    m_left_out += bytes;
    m_offset += bytes + m_held.size();
    if (m_passing) {
        m_offset += k_header + m_passing->passed;
    }
    m_held.clear();
    m_passing.reset();
    m_is_searching = true;
    m_is_damage = false;
}

/// Skips bytes up to the next record and returns their number. The probability that random bytes
/// look like a length with a matching checksum is 1 in 2^32 per position.
std::size_t EventFile::search(std::string_view bytes)
{
    for (std::size_t at = 0; at + k_header <= bytes.size(); ++at) {
        if (length_in(bytes.substr(at))) {
            m_is_searching = false;
            return leave_out(at);
        }
    }
    m_held = bytes.substr(bytes.size() - std::min(bytes.size(), k_header - 1));
    leave_out(bytes.size() - m_held.size());
    return bytes.size();
}

std::size_t EventFile::leave_out(std::size_t bytes)
{
    m_offset += bytes;
    m_damaged_bytes += m_is_damage ? bytes : 0;
    return bytes;
}

std::size_t EventFile::take(std::string_view bytes, Curves& curves)
{
    if (bytes.size() < k_header) {
        return 0;
    }
    const auto length = length_in(bytes);
    if (!length) {
        ++m_bad_records;
        m_is_searching = m_is_damage = true;
        return leave_out(1);
    }
    if (*length > k_longest_read) {
        m_passing = Passing{*length};
        return k_header;
    }
    const std::size_t whole = k_header + *length + k_checksum;
    if (bytes.size() < whole) {
        return 0;
    }
    const std::string_view data = bytes.substr(k_header, *length);
    if (masked(crc32c(data)) == number_at<std::uint32_t>(bytes, k_header + *length)) {
        ++(read_event(data, curves) ? m_records : m_bad_records);
        m_offset += whole;
        return whole;
    }
    ++m_bad_records;
    m_is_damage = true;
    m_checked_in_vain += whole;
    // Bytes may be missing: the next record may begin within this one.
    m_is_searching = m_checked_in_vain <= k_most_checks * (m_offset - m_left_out + whole);
    return leave_out(m_is_searching ? k_header : whole);
}

/// Completes the held record from `bytes`, and reads it once it is complete.
std::size_t EventFile::take_held(std::string_view bytes, Curves& curves)
{
    std::size_t needed = k_header;
    if (m_held.size() >= k_header) {
        needed += static_cast<std::size_t>(number_at<std::uint64_t>(m_held, 0)) + k_checksum;
    }
    const std::size_t used = std::min(needed - m_held.size(), bytes.size());
    m_held += bytes.substr(0, used);
    if (m_held.size() == needed) {
        const std::string held = std::exchange(m_held, {});
        const std::size_t taken = take(held, curves);
        if (taken == 0) {
            m_held = held; // only its header was complete
        } else if (m_is_searching) {
            feed(std::string_view(held).substr(taken), curves);
        }
    }
    return used;
}

std::size_t EventFile::pass_over(std::string_view bytes)
{
    Passing& passing = *m_passing;
    if (passing.passed < passing.length) {
        const auto some = bytes.substr(0, passing.length - passing.passed);
        passing.crc = crc32c(some, passing.crc);
        passing.passed += some.size();
        return some.size();
    }
    const auto some = bytes.substr(0, k_checksum - m_held.size());
    m_held += some;
    if (m_held.size() == k_checksum) {
        const bool is_sound = masked(passing.crc) == number_at<std::uint32_t>(m_held, 0);
        ++(is_sound ? m_records : m_bad_records);
        m_damaged_bytes += is_sound ? 0 : k_header + passing.length + k_checksum;
        m_offset += k_header + passing.length + k_checksum;
        m_passing.reset();
        m_held.clear();
    }
    return some.size();
}

/// False if it is not a valid event.
bool EventFile::read_event(std::string_view data, Curves& curves)
{
    const auto event = event_in(data);
    if (!event) {
        return false;
    }
    Message summary(event->summary);
    Field field;
    while (summary.next(field)) {
        const auto value = field.is(1, Kind::bytes) ? value_in(field.bytes) : Value();
        if (!value) {
            return false;
        }
        if (const auto number = number_of(*value)) {
            curves.add(value->tag, {event->step, event->at, *number});
        }
    }
    return summary.is_sound();
}

std::optional<double> EventFile::number_of(const Value& value)
{
    if (value.simple || !value.has_tensor) {
        return value.simple;
    }
    const bool is_known = m_scalar_tags.find(value.tag) != m_scalar_tags.end();
    if (value.is_scalar && !is_known && m_scalar_tags.size() < k_most_scalar_tags &&
        value.tag.size() <= Curves::k_longest_tag) {
        m_scalar_tags.emplace(value.tag);
    }
    return is_known || value.is_scalar ? scalar_in(value.tensor) : std::nullopt;
}

} // namespace gpuq::telemetry
