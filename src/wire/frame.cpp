// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/frame.h"

namespace gpuq::wire {

std::string encode(const Frame& frame)
{
    return std::visit([](const auto& each) { return encoded_frame(each); }, frame);
}

template class FrameDecoder<Frame>;

} // namespace gpuq::wire
