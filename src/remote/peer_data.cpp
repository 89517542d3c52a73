// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/peer_data.h"

#include "core/key.h"
#include "remote/forward.h"
#include "term/sanitise.h"

#include <algorithm>
#include <variant>

namespace gpuq::remote {
namespace {

namespace frames = wire::remote;
using Fault = std::optional<std::string_view>;

constexpr std::size_t k_most_machine_name = 255;
constexpr std::size_t k_most_user_name = 64;
/// Maximum size of a cell: a character and the four marks that `sanitised` keeps on it.
constexpr std::size_t k_bytes_of_cell = 4 * 5;

bool is_made_of(std::string_view text, std::size_t most, std::string_view others)
{
    return !text.empty() && text.size() <= most &&
           std::all_of(text.begin(), text.end(), [&](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      others.find(c) != std::string_view::npos;
           });
}

Fault fault_of(const frames::Hello& hello)
{
    if (hello.version < 1 || hello.version > k_largest_version) {
        return "an invalid version";
    }
    return is_machine_name(hello.program) && is_machine_name(hello.host) ? Fault()
                                                                         : "invalid names in Hello";
}

Fault fault_of(const frames::Following& following)
{
    return RunKey::parse(following.key) && following.link >= 0 && following.link <= k_largest_link
               ? Fault()
               : "an invalid run key or link";
}

Fault fault_of(const frames::SshTarget& target)
{
    return RunKey::parse(target.key) && is_user_name(target.user) ? Fault()
                                                                  : "an invalid run key or user";
}

Fault fault_of(const frames::Exit& exit)
{
    constexpr int k_largest_status = 255;
    return exit.status >= 0 && exit.status <= k_largest_status ? Fault() : "an invalid exit status";
}

Fault fault_of(const frames::Open& open)
{
    return frames::is_session_name(open.session) ? Fault() : "an invalid session name";
}

Fault fault_of(const frames::Start& start)
{
    return start.forwards.size() <= frames::k_most_forwards &&
                   std::all_of(start.forwards.begin(), start.forwards.end(), is_destination)
               ? Fault()
               : "an invalid --forward destination";
}

/// For frames whose fields cannot be invalid on their own.
template <typename Frame>
Fault fault_of(const Frame&)
{
    return {};
}

template <typename Frame, typename... Others>
constexpr bool is_any_of = (std::is_same_v<Frame, Others> || ...);

template <typename Frame>
constexpr bool is_of_client =
    is_any_of<Frame, frames::Open, frames::Start, frames::Taken, frames::Input, frames::InputEnd,
              frames::Resize, frames::Signal, frames::Bye, frames::Dial>;
template <typename Frame>
constexpr bool is_of_both = is_any_of<Frame, frames::Beat, frames::StreamBytes, frames::StreamTaken,
                                      frames::StreamEnd, frames::StreamClosed>;

} // namespace

std::optional<std::string_view> fault_in(const frames::Frame& frame, Sender sender)
{
    return std::visit(
        [&](const auto& each) -> Fault {
            using Frame = std::decay_t<decltype(each)>;
            if (!is_of_both<Frame> && is_of_client<Frame> != (sender == Sender::client)) {
                return "a frame that only the other side sends";
            }
            return fault_of(each);
        },
        frame);
}

std::string peer_text(std::string_view bytes, std::size_t most)
{
    return clipped(sanitised(bytes.substr(0, most * k_bytes_of_cell)), most);
}

bool is_machine_name(std::string_view text)
{
    return is_made_of(text, k_most_machine_name, "._-+~");
}

bool is_user_name(std::string_view text)
{
    return is_made_of(text, k_most_user_name, "._-@+") && text.front() != '-';
}

} // namespace gpuq::remote
