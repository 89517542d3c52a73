// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/passed_descriptors.h"

#include <algorithm>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

namespace gpuq {
namespace {

/// A message with room for two descriptors.
struct Message {
    explicit Message(iovec bytes)
        : part(bytes)
    {
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
    }
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;

    iovec part;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    msghdr header{};
};

} // namespace

bool send_with_descriptors(int socket, std::string_view bytes, std::array<int, 2> descriptors)
{
    // sendmsg() does not modify the bytes.
    Message message({const_cast<char*>(bytes.data()), bytes.size()});
    cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
    return ::sendmsg(socket, &message.header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

ssize_t receive_with_descriptors(int socket, std::span<char> buffer,
                                 std::optional<DescriptorPair>& passed)
{
    Message message({buffer.data(), buffer.size()});
    const ssize_t count = ::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC);
    const cmsghdr* const header = count < 0 ? nullptr : CMSG_FIRSTHDR(&message.header);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        std::array<int, 2> numbers{-1, -1};
        std::memcpy(numbers.data(), CMSG_DATA(header),
                    std::min(header->cmsg_len - CMSG_LEN(0), sizeof numbers));
        DescriptorPair pair{Descriptor(numbers[0]), Descriptor(numbers[1])};
        if (pair[0] && pair[1]) {
            passed = std::move(pair);
        }
    }
    const bool is_cut = count >= 0 && (message.header.msg_flags & MSG_CTRUNC) != 0;
    return is_cut ? 0 : count;
}

} // namespace gpuq
