// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/mailbox.h"

#include <utility>
#include <variant>

namespace gpuq::tui {
namespace {

bool replaces(const Message& newer, const Message& older)
{
    if (newer.index() != older.index()) {
        return false;
    }
    if (const auto* const read = std::get_if<DetailRead>(&newer)) {
        return read->detail.key == std::get<DetailRead>(older).detail.key;
    }
    return std::holds_alternative<PictureRead>(newer) ||
           std::holds_alternative<ComparisonRead>(newer);
}

} // namespace

void add_newest(std::deque<Message>& messages, Message message)
{
    std::erase_if(messages, [&](const Message& older) { return replaces(message, older); });
    messages.push_back(std::move(message));
}

} // namespace gpuq::tui
