// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/key.h"
#include "remote/peer_data.h"
#include "term/sanitise.h"
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

/// The frames of an OutputDecoder; contiguous output is merged into one frame.
struct Taking {
    std::vector<Frame> frames;
    bool broken = false;

    void take(OutputDecoder& decoder, std::string_view bytes)
    {
        while (true) {
            auto came = decoder.take(bytes);
            broken = broken || !came;
            if (!came || std::holds_alternative<std::monostate>(*came)) {
                check(!came || bytes.empty());
                return;
            }
            if (const auto* output = std::get_if<OutputBytes>(&*came)) {
                add(Output{output->stream, output->offset, std::string(output->bytes)});
            } else {
                add(std::get<Frame>(*came));
            }
        }
    }
    void add(const Frame& frame)
    {
        const auto* const output = std::get_if<Output>(&frame);
        auto* const before = frames.empty() ? nullptr : std::get_if<Output>(&frames.back());
        if (output != nullptr && before != nullptr && output->stream == before->stream &&
            output->offset == before->offset + before->bytes.size()) {
            before->bytes += output->bytes;
        } else {
            frames.push_back(frame);
        }
    }
};

/// Both decoders must agree, except that for an incomplete final Output frame the OutputDecoder
/// already yields its beginning.
void check_same(const Reading& whole, const Taking& pieces)
{
    Taking expected;
    for (const Frame& frame : whole.frames) {
        expected.add(frame);
    }
    check(pieces.broken || !whole.broken); // it detects an invalid stream before all bytes arrived
    const std::size_t count = expected.frames.size();
    const std::size_t extra = pieces.frames.size() - count;
    check(pieces.frames.size() >= count && extra <= 1);
    for (std::size_t i = 0; i < count; ++i) {
        const auto* const one = std::get_if<Output>(&expected.frames[i]);
        const auto* const other = std::get_if<Output>(&pieces.frames[i]);
        const bool longer = i + 1 == count && extra == 0 && one != nullptr && other != nullptr &&
                            one->stream == other->stream && one->offset == other->offset &&
                            other->bytes.starts_with(one->bytes);
        check(longer || expected.frames[i] == pieces.frames[i]);
    }
}

/// Frames that pass the checks of peer_data.h must have the properties that they guarantee.
void check_peer_data(const Frame& frame)
{
    const bool from_server = !remote::fault_in(frame, remote::Sender::server);
    const bool from_client = !remote::fault_in(frame, remote::Sender::client);
    if (const auto* following = std::get_if<Following>(&frame)) {
        check(!from_client && (!from_server || RunKey::parse(following->key)));
    } else if (const auto* target = std::get_if<SshTarget>(&frame)) {
        check(!from_client &&
              (!from_server || (RunKey::parse(target->key) && remote::is_user_name(target->user))));
    } else if (const auto* failure = std::get_if<Failure>(&frame)) {
        const std::string text = remote::peer_text(failure->text);
        check(sanitised(text) == text && cells(text) <= remote::k_most_cells);
    } else if (std::holds_alternative<Start>(frame) || std::holds_alternative<Open>(frame)) {
        check(!from_server);
    }
}

} // namespace

/// Any bytes: decoding in one piece and in two pieces, cut anywhere, gives the same frames, and a
/// decoded frame survives encoding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size); // bytes are characters
    if (const auto first = unescape_argument(bytes)) {
        check(escape_argument(*first) == bytes);
    }
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
    OutputDecoder in_place, in_place_two;
    Taking taken, taken_in_two;
    taken.take(in_place, bytes);
    taken_in_two.take(in_place_two, bytes.substr(0, cut));
    taken_in_two.take(in_place_two, bytes.substr(cut));
    check(taken.frames == taken_in_two.frames && taken.broken == taken_in_two.broken);
    check_same(whole, taken);
    for (const Frame& frame : whole.frames) {
        check_peer_data(frame);
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
