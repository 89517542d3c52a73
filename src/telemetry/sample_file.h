// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "telemetry/sample.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The file of samples of one node and one link: link-N/samples-NODE. Two copies of a header, then
/// slots of one size, each with a checksum of its own, in rings: of the last two hours every
/// sample, of two days one a minute, of four weeks one in ten minutes. A slot that was written in
/// part, wherever it is, is no slot; the others are. So the file can be read at any moment, also
/// after a crash, and never grows beyond its rings. All of this is pure.
namespace gpuq {

constexpr std::string_view k_samples_prefix = "samples-";
/// More GPUs of one node than this are not sampled.
constexpr std::size_t k_most_gpus = 24;

/// Its name in the folder of a link; `node` may be any text.
std::string samples_name(std::string_view node);

/// What a GPU is called. Empty as long as nobody knows.
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
    std::uint32_t cpus = 0;    ///< that the job has on the node; 0: nobody has said
    bool operator==(const SampleHeader&) const = default;
};

/// Bytes for a place in the file.
struct Piece {
    std::uint64_t offset = 0;
    std::string bytes;
};

/// Makes one sample out of several.
class Thinner {
public:
    void add(const Sample& sample);
    /// What was added since the last call; with at least one sample.
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

/// What to write, and where. The first piece is the header's.
class SampleWriter {
public:
    explicit SampleWriter(SampleHeader header);

    /// The header, for the place that its last writing has left alone.
    Piece header();
    /// GPUs that have become known; the header has to be written again.
    void rename(std::vector<GpuName> gpus);
    /// `sample.gpus` has as many as the header.
    std::vector<Piece> add(const Sample& sample);

private:
    Piece slot(std::size_t ring, const Sample& sample);

    SampleHeader m_header;
    std::uint32_t m_generation = 0;
    std::array<std::uint64_t, 4> m_written{};
    Thinner m_minute, m_ten_minutes;
};

/// How many bytes of the beginning tell the newest sample, whatever the number of GPUs.
constexpr std::size_t k_newest_size = 12 << 10;

/// `bytes` is the beginning of the file, or all of it. `io` when it is none, or of a later version.
Result<SampleHeader> sample_header(std::string_view bytes);
/// The newest sample, out of at least `k_newest_size` bytes or the whole file.
std::optional<Sample> newest_sample(std::string_view bytes);
/// All there are, oldest first, each time told of once, as finely as it is known.
std::vector<Sample> all_samples(std::string_view bytes);

/// Where in a file its finest samples are: slots in the order of their writing, the first again
/// after the last.
struct FinestSlots {
    std::uint64_t offset = 0; ///< of the first
    std::size_t size = 0;     ///< of one
    std::size_t count = 0;
};
FinestSlots finest_slots(const SampleHeader& header);
/// Nothing where no sample was written, or a part of one.
std::optional<Sample> sample_in(std::string_view slot, const SampleHeader& header);

} // namespace gpuq
