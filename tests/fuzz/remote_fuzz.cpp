// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/remote_frame.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

using namespace gpuq;
using namespace gpuq::wire::remote;

namespace {

void check(bool holds)
{
    if (!holds) {
        std::abort();
    }
}

struct Reading {
    std::vector<Frame> frames;
    bool broken = false;

    void take(Decoder& decoder)
    {
        while (true) {
            auto frame = decoder.next();
            broken = broken || !frame;
            if (!frame || !*frame) {
                return;
            }
            frames.push_back(**frame);
        }
    }
};

} // namespace

/// Any bytes: what is read of them is the same in one piece and in two, wherever they are cut; what
/// has been read survives being written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size); // bytes are characters
    const std::size_t cut = size == 0 ? 0 : data[size - 1] * size / 256;
    Decoder one, two;
    Reading whole, parts;
    one.feed(bytes);
    whole.take(one);
    two.feed(bytes.substr(0, cut));
    parts.take(two);
    two.feed(bytes.substr(cut));
    parts.take(two);
    check(whole.frames == parts.frames && whole.broken == parts.broken);
    for (const Frame& frame : whole.frames) {
        Decoder again;
        again.feed(encode(frame));
        const auto read = again.next();
        check(read && *read && **read == frame);
    }
    Greeting greeting, in_two;
    const auto all = greeting.feed(bytes);
    const auto first = in_two.feed(bytes.substr(0, cut));
    if (all && first && !*first) {
        const auto second = in_two.feed(bytes.substr(cut));
        check(second && second->has_value() == all->has_value());
        check(!*second || **second == **all);
    }
    return 0;
}
