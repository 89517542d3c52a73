// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "telemetry/sample.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The sample file of one node and one link: link-N/samples-NODE. It consists of two copies of a
/// header, then slots of equal size, each with its own checksum, in rings: every sample of the last
/// two hours, one per minute for two days, one per ten minutes for four weeks. A partly written
/// slot is ignored, the others remain valid. The file can therefore be read at any time, also after
/// a crash, and never grows beyond its rings. All of this is pure.
namespace gpuq {

constexpr std::string_view k_samples_prefix = "samples-";
/// The maximum number of GPUs per node that are sampled.
constexpr std::size_t k_most_gpus = 24;

/// The file's name in a link's directory; `node` may be any text.
std::string samples_name(std::string_view node);

/// The names of a GPU; empty while unknown.
struct GpuName {
    std::string uuid; ///< GPU-... or MIG-...
    std::string model;
    std::string pci;
    bool operator==(const GpuName&) const = default;
};

struct SampleHeader {
    Time began;
    std::string node;
    std::vector<GpuName> gpus; ///< their number never changes
    std::uint32_t cpus = 0;    ///< the job's CPUs on the node; 0: unknown
    bool operator==(const SampleHeader&) const = default;
};

/// Bytes for a position in the file.
struct Piece {
    std::uint64_t offset = 0;
    std::string bytes;
};

/// Merges several samples into one.
class Thinner {
public:
    void add(const Sample& sample);
    /// The merged samples since the last call; requires at least one.
    Sample take();
    std::chrono::milliseconds stands_for() const { return m_newest.stands_for; }

private:
    struct Sum {
        std::uint64_t sum = 0, count = 0, largest = 0;
        Reading last;
    };
    static void add(Sum& sum, const Reading& reading);
    static Reading taken(const Sum& sum, Thinned thinned);

    Sample m_newest;
    std::array<Sum, k_run_metrics> m_run;
    std::vector<std::array<Sum, k_gpu_metrics>> m_gpus;
};

/// Produces the pieces to write. The first piece must be the header's.
class SampleWriter {
public:
    explicit SampleWriter(SampleHeader header);

    /// The header, at the position of the copy that was written less recently.
    Piece header();
    /// Sets the names of GPUs when they become known; the header must then be written again.
    void rename(std::vector<GpuName> gpus);
    /// `sample.gpus` must have as many entries as the header.
    std::vector<Piece> add(const Sample& sample);

private:
    Piece slot(std::size_t ring, const Sample& sample);

    SampleHeader m_header;
    std::uint32_t m_generation = 0;
    std::array<std::uint64_t, 4> m_written{};
    Thinner m_minute, m_ten_minutes;
};

/// The number of bytes at the beginning of a file that contain the newest sample, for any number of
/// GPUs.
constexpr std::size_t k_newest_size = 12 << 10;

/// `bytes` is the beginning of the file, or all of it. `io` if it is not a sample file, or of
/// another version.
Result<SampleHeader> sample_header(std::string_view bytes);
/// The newest sample, from at least `k_newest_size` bytes or the whole file.
std::optional<Sample> newest_sample(std::string_view bytes);
/// All samples, oldest first, without overlaps, at the finest available resolution.
std::vector<Sample> all_samples(std::string_view bytes);

/// The position of the finest samples in a file: slots in the order of writing, which wraps around
/// from the last to the first.
struct FinestSlots {
    std::uint64_t offset = 0; ///< of the first slot
    std::size_t size = 0;     ///< of one slot
    std::size_t count = 0;
};
FinestSlots finest_slots(const SampleHeader& header);
/// Nothing if the slot is empty or incomplete.
std::optional<Sample> sample_in(std::string_view slot, const SampleHeader& header);

} // namespace gpuq
