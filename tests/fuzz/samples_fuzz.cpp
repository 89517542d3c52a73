// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/sample_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace gpuq;

namespace {

/// A file with two samples, of as many GPUs as `gpus` says.
std::string sound_file(std::size_t gpus)
{
    SampleWriter writer({Time{}, "node", std::vector<GpuName>(gpus)});
    std::vector<Piece> pieces = {writer.header()};
    for (int second = 1; second <= 2; ++second) {
        Sample sample;
        sample.elapsed = std::chrono::seconds(second);
        sample.stands_for = std::chrono::seconds(1);
        sample.gpus.resize(gpus);
        const auto more = writer.add(sample);
        pieces.insert(pieces.end(), more.begin(), more.end());
    }
    std::string bytes;
    for (const Piece& piece : pieces) {
        bytes.resize(std::max<std::size_t>(bytes.size(), piece.offset + piece.bytes.size()));
        bytes.replace(piece.offset, piece.bytes.size(), piece.bytes);
    }
    return bytes;
}

} // namespace

/// Any damage to a file: whatever is read was written, or is nothing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)all_samples(text);
    (void)newest_sample(text);
    if (size < 4) {
        return 0;
    }
    std::string file = sound_file(data[0] % 3);
    const std::size_t place = (data[1] * 256U + data[2]) % file.size();
    const std::string_view damage = text.substr(3);
    file.replace(place, std::min(damage.size(), file.size() - place), damage);
    for (const Sample& sample : all_samples(file)) {
        if (sample.elapsed != std::chrono::seconds(1) &&
            sample.elapsed != std::chrono::seconds(2)) {
            std::abort();
        }
    }
    return 0;
}
