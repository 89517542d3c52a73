// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/sample_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <string_view>

using namespace gpuq;

namespace {

/// A file with two samples of `gpus` GPUs.
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

/// Bytes as a crash might leave them in a file. libFuzzer traces comparisons and would soon forge a
/// checksum, which no crash does. Therefore it controls only the length: any change of `text`
/// changes all bytes.
std::string damage(std::string_view text)
{
    std::minstd_rand byte(
        static_cast<std::minstd_rand::result_type>(std::hash<std::string_view>{}(text)));
    std::string bytes(text.size(), '\0');
    for (char& c : bytes) {
        c = static_cast<char>(byte() >> 8);
    }
    return bytes;
}

/// Every sample read from `file` must have been written.
void check(const std::string& file)
{
    for (const Sample& sample : all_samples(file)) {
        if (sample.elapsed != std::chrono::seconds(1) &&
            sample.elapsed != std::chrono::seconds(2)) {
            std::abort();
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)all_samples(text);
    (void)newest_sample(text);
    if (size < 4) {
        return 0;
    }
    const std::string sound = sound_file(data[0] % 3);
    const std::size_t place = (data[1] * 256U + data[2]) % sound.size();
    const std::size_t length = std::min(size - 3, sound.size() - place);
    std::string damaged = sound;
    damaged.replace(place, length, damage(text), 0, length);
    check(damaged);
    check(std::string(sound).replace(place, length, length, '\0'));
    check(sound.substr(0, place));
    return 0;
}
