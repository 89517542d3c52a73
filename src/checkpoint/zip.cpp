// SPDX-License-Identifier: GPL-2.0-or-later
// .pt, .pth and .ckpt since PyTorch 1.6, .npz, .keras. The table of contents is at the end, so a
// zip archive with a matching table was written completely. Offsets as in APPNOTE.TXT 6.3.
#include "checkpoint/formats.h"

#include <algorithm>
#include <optional>

namespace gpuq::checkpoint {
namespace {

using Says = Judgement::Says;
using namespace std::string_view_literals;

constexpr std::size_t k_end_size = 22;
constexpr std::size_t k_locator_size = 20;
constexpr std::size_t k_end64_size = 56;
constexpr std::size_t k_entry_size = 46;
constexpr std::size_t k_local_size = 30;
constexpr std::uint64_t k_longest_comment = 0xffff;
/// Enough for half a million files; a longer table is not checked.
constexpr std::uint64_t k_longest_table = 64 << 20;
/// About this many of its files are checked.
constexpr std::uint64_t k_samples = 32;

struct Table {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t entries = 0;
    std::uint64_t end = 0; ///< the offset at which it must end: the next record begins here
};

struct Entry {
    std::uint64_t local = 0; ///< offset of its file
    std::uint64_t bytes = 0; ///< compressed size of the file
    std::uint64_t name = 0;  ///< length of its name
    std::size_t length = 0;  ///< length of this entry
};

/// The offset of the archive's last record within the last bytes of the file.
std::optional<std::size_t> find_end(std::string_view tail)
{
    if (tail.size() < k_end_size) {
        return std::nullopt;
    }
    for (std::size_t at = tail.size() - k_end_size + 1; at-- > 0;) {
        if (tail.substr(at, 4) == "PK\5\6"sv &&
            little_endian(tail, at + 20, 2) == tail.size() - at - k_end_size) {
            return at;
        }
    }
    return std::nullopt;
}

/// The table described by a zip64 record, for the locator that ends at `end`.
std::optional<Table> table64(Bytes& bytes, std::string_view locator, std::uint64_t end)
{
    const std::uint64_t at = little_endian(locator, 8, 8);
    const auto record = bytes.at(at, k_end64_size);
    if (!record || !record->starts_with("PK\6\6")) {
        return std::nullopt;
    }
    const std::uint64_t between = end - k_locator_size;
    if (at > between || between - at < k_end64_size ||
        little_endian(*record, 4, 8) != between - at - 12) {
        return std::nullopt;
    }
    return Table{little_endian(*record, 48, 8), little_endian(*record, 40, 8),
                 little_endian(*record, 32, 8), at};
}

std::optional<Table> find_table(Bytes& bytes)
{
    const std::string tail = bytes.last(k_end_size + k_longest_comment);
    const auto at = find_end(tail);
    if (!at) {
        return std::nullopt;
    }
    const std::uint64_t end = bytes.size() - tail.size() + *at;
    const auto locator =
        end >= k_locator_size ? bytes.at(end - k_locator_size, k_locator_size) : std::nullopt;
    if (locator && locator->starts_with("PK\6\7")) {
        return table64(bytes, *locator, end);
    }
    return Table{little_endian(tail, *at + 16, 4), little_endian(tail, *at + 12, 4),
                 little_endian(tail, *at + 10, 2), end};
}

/// Replaces numbers that did not fit into 32 bits by those in the extra field.
void widen(Entry& entry, std::string_view text, std::string_view extra)
{
    while (extra.size() >= 4) {
        const std::uint64_t id = little_endian(extra, 0, 2);
        const std::uint64_t length = little_endian(extra, 2, 2);
        std::string_view numbers = extra.substr(4, length);
        const auto next = [&](std::uint64_t& number) {
            if (number == 0xffffffff && numbers.size() >= 8) {
                number = little_endian(numbers, 0, 8);
                numbers.remove_prefix(8);
            }
        };
        if (id == 1) {
            std::uint64_t unpacked = little_endian(text, 24, 4);
            next(unpacked);
            next(entry.bytes);
            next(entry.local);
            return;
        }
        extra.remove_prefix(std::min<std::size_t>(extra.size(), 4 + length));
    }
}

std::optional<Entry> parse_entry(std::string_view text)
{
    if (text.size() < k_entry_size || !text.starts_with("PK\1\2")) {
        return std::nullopt;
    }
    const std::size_t name = little_endian(text, 28, 2);
    const std::size_t extra = little_endian(text, 30, 2);
    const std::size_t comment = little_endian(text, 32, 2);
    Entry entry{little_endian(text, 42, 4), little_endian(text, 20, 4), name,
                k_entry_size + name + extra + comment};
    if (entry.length > text.size()) {
        return std::nullopt;
    }
    widen(entry, text, text.substr(k_entry_size + name, extra));
    return entry;
}

/// True if its file is completely before the table.
bool is_in_range(const Entry& entry, const Table& table)
{
    const std::uint64_t head = k_local_size + entry.name;
    return head <= table.offset && entry.bytes <= table.offset - head &&
           entry.local <= table.offset - head - entry.bytes;
}

Judgement check_entries(Bytes& bytes, const Table& table, std::string_view text)
{
    const std::uint64_t stride = std::max<std::uint64_t>(1, table.entries / k_samples);
    std::uint64_t count = 0;
    for (; !text.empty(); ++count) {
        const auto entry = parse_entry(text);
        if (!entry || !is_in_range(*entry, table)) {
            return incomplete("an entry of its zip directory does not match the file");
        }
        if (count % stride == 0 && bytes.at(entry->local, 4) != "PK\3\4") {
            return incomplete("a file named in its zip directory is missing");
        }
        text.remove_prefix(entry->length);
    }
    return count == table.entries ? Judgement{Says::whole, ""}
                                  : incomplete("its zip directory is incomplete");
}

} // namespace

Judgement check_zip(Bytes& bytes)
{
    const auto table = find_table(bytes);
    if (!table) {
        return incomplete("its end is missing: it has no zip directory");
    }
    if (table->offset > table->end || table->end - table->offset != table->size) {
        return incomplete("its zip directory is not at the recorded offset");
    }
    if (table->entries == 0) {
        return incomplete("it is an empty zip archive");
    }
    if (table->size > k_longest_table) {
        return {Says::settles, ""};
    }
    const auto text = bytes.at(table->offset, table->size);
    return text ? check_entries(bytes, *table, *text) : incomplete("its zip directory is cut off");
}

} // namespace gpuq::checkpoint
