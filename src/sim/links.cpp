// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/links.h"

#include <utility>

namespace gpuq::sim {

std::uint32_t Links::add(Link link)
{
    if (m_count % k_block == 0) {
        m_blocks.push_back(std::make_unique<Block>());
    }
    (*this)[m_count] = std::move(link);
    return m_count++;
}

void Links::finish(std::uint32_t number)
{
    Block& block = block_of(number);
    block.links[number % k_block].state = State::over;
    if (++block.over == k_block) {
        m_blocks[number / k_block].reset();
    }
}

} // namespace gpuq::sim
