// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/sample_file.h"

#include "telemetry/crc32c.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace gpuq {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::string_view k_magic = "gpuqsmpl";
constexpr std::uint32_t k_version = 1;
constexpr std::size_t k_header = 4096;
constexpr std::size_t k_slots_begin = 2 * k_header;
constexpr std::size_t k_node = 128, k_uuid = 48, k_model = 64, k_pci = 32;
constexpr std::size_t k_slot_head = 48 + 8 * k_run_metrics;
constexpr std::size_t k_checksum = 4;

struct Ring {
    milliseconds period; ///< of one slot
    std::uint64_t slots;
};
/// The first ring holds the newest sample twice: one of the two slots is always complete.
constexpr std::array<Ring, 4> k_rings = {{{1s, 2}, {1s, 7200}, {60s, 2880}, {600s, 4032}}};
enum : std::size_t { k_newest, k_seconds, k_minutes, k_ten_minutes };

/// Times in a file are limited to this, so that sums of them can not overflow even if the file is
/// damaged.
constexpr milliseconds k_longest = std::chrono::hours(24 * 366 * 200);

/// The highest numbers represent reasons.
template <typename Number>
constexpr Number k_reasons_from = std::numeric_limits<Number>::max() - 0xff;

class Packer {
public:
    template <typename Number>
    void put(Number number)
    {
        static_assert(std::is_integral_v<Number>);
        m_bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    void put(milliseconds time) { put(std::int64_t{time.count()}); }
    /// Truncated or padded with NUL.
    void put(std::string_view text, std::size_t size)
    {
        m_bytes.append(text.substr(0, size));
        m_bytes.append(size - std::min(size, text.size()), '\0');
    }
    template <typename Number>
    void put(const Reading& reading)
    {
        constexpr std::uint64_t k_limit = k_reasons_from<Number>;
        const std::uint64_t value = reading.value().value_or(k_limit);
        const Unknown why = reading.known() ? Unknown::implausible : reading.why();
        put(static_cast<Number>(value < k_limit ? value : k_limit + static_cast<Number>(why)));
    }
    /// With the checksum at the beginning, `size` bytes long.
    std::string sealed(std::size_t size)
    {
        m_bytes.resize(size - k_checksum);
        const std::uint32_t sum = telemetry::crc32c(m_bytes);
        return std::string(reinterpret_cast<const char*>(&sum), sizeof sum) + m_bytes;
    }

private:
    std::string m_bytes;
};

class Unpacker {
public:
    /// Nothing if the checksum does not match.
    static std::optional<Unpacker> open(std::string_view sealed)
    {
        std::uint32_t sum = 0;
        if (sealed.size() < sizeof sum) {
            return std::nullopt;
        }
        std::memcpy(&sum, sealed.data(), sizeof sum);
        sealed.remove_prefix(sizeof sum);
        return telemetry::crc32c(sealed) == sum ? std::optional(Unpacker(sealed)) : std::nullopt;
    }
    template <typename Number>
    Number get()
    {
        Number number{};
        if (m_rest.size() >= sizeof number) {
            std::memcpy(&number, m_rest.data(), sizeof number);
            m_rest.remove_prefix(sizeof number);
        }
        return number;
    }
    milliseconds time()
    {
        return milliseconds(std::clamp<std::int64_t>(get<std::int64_t>(), 0, k_longest.count()));
    }
    Time moment()
    {
        constexpr std::int64_t k_last = std::chrono::microseconds(k_longest).count();
        return Time{
            std::chrono::microseconds{std::clamp<std::int64_t>(get<std::int64_t>(), 0, k_last)}};
    }
    std::string text(std::size_t size)
    {
        const std::string_view field = m_rest.substr(0, size);
        m_rest.remove_prefix(field.size());
        return std::string(field.substr(0, field.find('\0')));
    }
    template <typename Number>
    Reading reading()
    {
        const auto number = get<Number>();
        if (number < k_reasons_from<Number>) {
            return Reading::of(number);
        }
        const auto why = static_cast<std::size_t>(number - k_reasons_from<Number>);
        return why < k_unknowns ? static_cast<Unknown>(why) : Unknown::failed;
    }

private:
    explicit Unpacker(std::string_view rest)
        : m_rest(rest)
    {
    }
    std::string_view m_rest;
};

constexpr std::size_t slot_size(std::size_t gpus)
{
    return k_slot_head + gpus * 4 * k_gpu_metrics;
}
static_assert(k_slots_begin + 2 * slot_size(k_most_gpus) <= k_newest_size);

std::uint64_t offset_of(std::size_t ring, std::uint64_t slot, std::size_t gpus)
{
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < ring; ++i) {
        before += k_rings[i].slots;
    }
    return k_slots_begin + (before + slot) * slot_size(gpus);
}

std::string packed(const Sample& sample)
{
    Packer packer;
    packer.put(static_cast<std::uint32_t>(sample.stands_for.count()));
    packer.put(std::int64_t{sample.at.time_since_epoch().count()});
    packer.put(sample.elapsed);
    packer.put(sample.gpu_time.busy);
    packer.put(sample.gpu_time.idle);
    packer.put(sample.gpu_time.unknown);
    for (const Reading& reading : sample.run.readings) {
        packer.put<std::uint64_t>(reading);
    }
    for (const GpuSample& gpu : sample.gpus) {
        for (const Reading& reading : gpu.readings) {
            packer.put<std::uint32_t>(reading);
        }
    }
    return packer.sealed(slot_size(sample.gpus.size()));
}

std::optional<Sample> unpacked(std::string_view slot, std::size_t gpus)
{
    auto unpacker = Unpacker::open(slot);
    if (!unpacker) {
        return std::nullopt;
    }
    Sample sample;
    sample.stands_for = milliseconds(unpacker->get<std::uint32_t>());
    sample.at = unpacker->moment();
    sample.elapsed = unpacker->time();
    sample.gpu_time.busy = unpacker->time();
    sample.gpu_time.idle = unpacker->time();
    sample.gpu_time.unknown = unpacker->time();
    for (Reading& reading : sample.run.readings) {
        reading = unpacker->reading<std::uint64_t>();
    }
    sample.gpus.resize(gpus);
    for (GpuSample& gpu : sample.gpus) {
        for (Reading& reading : gpu.readings) {
            reading = unpacker->reading<std::uint32_t>();
        }
    }
    return sample;
}

struct Copy {
    std::uint32_t version = 0, generation = 0;
    SampleHeader header;
};

std::optional<Copy> header_copy(std::string_view bytes)
{
    auto unpacker = Unpacker::open(bytes);
    if (bytes.size() < k_header || !unpacker || unpacker->text(k_magic.size()) != k_magic) {
        return std::nullopt;
    }
    Copy copy;
    copy.version = unpacker->get<std::uint32_t>();
    copy.generation = unpacker->get<std::uint32_t>();
    copy.header.began = unpacker->moment();
    copy.header.node = unpacker->text(k_node);
    const auto gpus = std::min<std::size_t>(unpacker->get<std::uint32_t>(), k_most_gpus);
    for (std::size_t i = 0; i < gpus; ++i) {
        GpuName name;
        name.uuid = unpacker->text(k_uuid);
        name.model = unpacker->text(k_model);
        name.pci = unpacker->text(k_pci);
        copy.header.gpus.push_back(std::move(name));
    }
    // NUL if written by an earlier version of gpuq.
    copy.header.cpus = unpacker->get<std::uint32_t>();
    return copy;
}

std::vector<Sample> ring_in(std::string_view bytes, std::size_t ring, std::size_t gpus)
{
    const std::size_t size = slot_size(gpus);
    std::vector<Sample> samples;
    for (std::uint64_t i = 0; i < k_rings[ring].slots; ++i) {
        const std::uint64_t offset = offset_of(ring, i, gpus);
        if (offset + size > bytes.size()) {
            break;
        }
        if (auto sample = unpacked(bytes.substr(offset, size), gpus)) {
            samples.push_back(*std::move(sample));
        }
    }
    std::sort(samples.begin(), samples.end(),
              [](const Sample& a, const Sample& b) { return a.elapsed < b.elapsed; });
    return samples;
}

} // namespace

std::string samples_name(std::string_view node)
{
    std::string name(k_samples_prefix);
    for (const char c : node.substr(0, k_node)) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
        name += plain ? c : '_';
    }
    return name;
}

void Thinner::add(Sum& sum, const Reading& reading)
{
    sum.last = reading.known() || sum.count == 0 ? reading : sum.last;
    if (reading.known()) {
        sum.sum += *reading.value();
        sum.largest = std::max(sum.largest, *reading.value());
        ++sum.count;
    }
}

Reading Thinner::taken(const Sum& sum, Thinned thinned)
{
    if (sum.count == 0 || thinned == Thinned::last) {
        return sum.last;
    }
    return Reading::of(thinned == Thinned::largest ? sum.largest
                                                   : (sum.sum + sum.count / 2) / sum.count);
}

void Thinner::add(const Sample& sample)
{
    const milliseconds before = m_newest.stands_for;
    m_newest = sample;
    m_newest.stands_for += before;
    m_gpus.resize(sample.gpus.size());
    for (std::size_t i = 0; i < k_run_metrics; ++i) {
        add(m_run[i], sample.run.readings[i]);
    }
    for (std::size_t gpu = 0; gpu < m_gpus.size(); ++gpu) {
        for (std::size_t i = 0; i < k_gpu_metrics; ++i) {
            add(m_gpus[gpu][i], sample.gpus[gpu].readings[i]);
        }
    }
}

Sample Thinner::take()
{
    for (std::size_t i = 0; i < k_run_metrics; ++i) {
        m_newest.run.readings[i] = taken(m_run[i], row(static_cast<RunMetric>(i)).thinned);
    }
    for (std::size_t gpu = 0; gpu < m_gpus.size(); ++gpu) {
        for (std::size_t i = 0; i < k_gpu_metrics; ++i) {
            m_newest.gpus[gpu].readings[i] =
                taken(m_gpus[gpu][i], row(static_cast<GpuMetric>(i)).thinned);
        }
    }
    Sample sample = std::exchange(m_newest, {});
    m_run = {};
    m_gpus.clear();
    return sample;
}

SampleWriter::SampleWriter(SampleHeader header)
    : m_header(std::move(header))
{
    m_header.gpus.resize(std::min(m_header.gpus.size(), k_most_gpus));
}

Piece SampleWriter::header()
{
    ++m_generation;
    Packer packer;
    packer.put(k_magic, k_magic.size());
    packer.put(k_version);
    packer.put(m_generation);
    packer.put(std::int64_t{m_header.began.time_since_epoch().count()});
    packer.put(m_header.node, k_node);
    packer.put(static_cast<std::uint32_t>(m_header.gpus.size()));
    for (const GpuName& name : m_header.gpus) {
        packer.put(name.uuid, k_uuid);
        packer.put(name.model, k_model);
        packer.put(name.pci, k_pci);
    }
    packer.put(m_header.cpus);
    return {(m_generation % 2) * k_header, packer.sealed(k_header)};
}

void SampleWriter::rename(std::vector<GpuName> gpus)
{
    gpus.resize(m_header.gpus.size());
    m_header.gpus = std::move(gpus);
}

Piece SampleWriter::slot(std::size_t ring, const Sample& sample)
{
    const std::uint64_t place = m_written[ring]++ % k_rings[ring].slots;
    return {offset_of(ring, place, m_header.gpus.size()), packed(sample)};
}

std::vector<Piece> SampleWriter::add(const Sample& sample)
{
    assert(sample.gpus.size() == m_header.gpus.size());
    std::vector<Piece> pieces = {slot(k_seconds, sample), slot(k_newest, sample)};
    m_minute.add(sample);
    if (m_minute.stands_for() >= k_rings[k_minutes].period) {
        const Sample minute = m_minute.take();
        pieces.push_back(slot(k_minutes, minute));
        m_ten_minutes.add(minute);
    }
    if (m_ten_minutes.stands_for() >= k_rings[k_ten_minutes].period) {
        pieces.push_back(slot(k_ten_minutes, m_ten_minutes.take()));
    }
    return pieces;
}

Result<SampleHeader> sample_header(std::string_view bytes)
{
    std::optional<Copy> best;
    for (const std::size_t place : {std::size_t{0}, k_header}) {
        auto copy = header_copy(bytes.substr(std::min(place, bytes.size()), k_header));
        if (copy && (!best || copy->generation > best->generation)) {
            best = std::move(copy);
        }
    }
    if (!best) {
        return fail(Error::Kind::io, "not a file of samples, or not written yet");
    }
    if (best->version != k_version) {
        return fail(Error::Kind::io,
                    fmt::format("samples of version {}; this gpuq knows version {}", best->version,
                                k_version));
    }
    return std::move(best->header);
}

std::optional<Sample> newest_sample(std::string_view bytes)
{
    const auto header = sample_header(bytes);
    std::vector<Sample> newest =
        header ? ring_in(bytes, k_newest, header->gpus.size()) : std::vector<Sample>{};
    return newest.empty() ? std::nullopt : std::optional(std::move(newest.back()));
}

std::vector<Sample> all_samples(std::string_view bytes)
{
    const auto header = sample_header(bytes);
    if (!header) {
        return {};
    }
    std::vector<Sample> all;
    for (const std::size_t ring : {k_seconds, k_minutes, k_ten_minutes}) {
        std::vector<Sample> coarser = ring_in(bytes, ring, header->gpus.size());
        if (!all.empty()) {
            const milliseconds known_from = all.front().elapsed - all.front().stands_for;
            std::erase_if(coarser, [&](const Sample& s) { return s.elapsed > known_from; });
        }
        coarser.insert(coarser.end(), std::make_move_iterator(all.begin()),
                       std::make_move_iterator(all.end()));
        all = std::move(coarser);
    }
    return all;
}

FinestSlots finest_slots(const SampleHeader& header)
{
    const std::size_t gpus = header.gpus.size();
    return {offset_of(k_seconds, 0, gpus), slot_size(gpus), k_rings[k_seconds].slots};
}

std::optional<Sample> sample_in(std::string_view slot, const SampleHeader& header)
{
    return unpacked(slot, header.gpus.size());
}

} // namespace gpuq
