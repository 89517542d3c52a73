// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/socket_owner.h"

#include "io/descriptor.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sstream>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <vector>

namespace gpuq {
namespace {

constexpr std::size_t k_answer = 32 << 10;
constexpr unsigned k_tcp_listen = 10;

/// One end of a connection, in network byte order.
struct Address {
    sa_family_t family = AF_UNSPEC;
    std::array<std::uint32_t, 4> address_words{}; ///< for IPv4, only the first
    std::uint16_t port = 0;
    std::size_t size() const { return family == AF_INET ? 1 : address_words.size(); }
    bool is_loopback() const
    {
        return family == AF_INET ? (ntohl(address_words[0]) >> 24) == 127
                                 : address_words == std::array<std::uint32_t, 4>{0, 0, 0, htonl(1)};
    }
};

struct Socket {
    unsigned uid = 0;
    bool has_owner = false; ///< false: not accepted yet, or closed by its process
};

using AskName = int (*)(int, sockaddr*, socklen_t*);

Address address_by(AskName ask, int socket)
{
    sockaddr_storage raw{};
    socklen_t size = sizeof raw;
    Address address;
    if (ask(socket, reinterpret_cast<sockaddr*>(&raw), &size) != 0) {
        return address;
    }
    address.family = raw.ss_family;
    if (raw.ss_family == AF_INET) {
        sockaddr_in four{};
        std::memcpy(&four, &raw, sizeof four);
        address.address_words[0] = four.sin_addr.s_addr;
        address.port = four.sin_port;
    } else if (raw.ss_family == AF_INET6) {
        sockaddr_in6 six{};
        std::memcpy(&six, &raw, sizeof six);
        std::memcpy(address.address_words.data(), &six.sin6_addr, sizeof six.sin6_addr);
        address.port = six.sin6_port;
    }
    return address;
}

/// Sends a sock_diag request and passes each response to `take` until that returns false. Returns
/// false when the kernel does not respond or reports an error.
template <typename Request>
bool query_kernel(const Request& request, int flags,
                  const std::function<bool(const nlmsghdr&, const char* body)>& take)
{
    const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    struct {
        nlmsghdr header;
        Request body;
    } message{};
    message.header.nlmsg_len = sizeof message;
    message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    message.header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    message.body = request;
    if (!socket || ::send(socket.get(), &message, sizeof message, 0) != sizeof message) {
        return false;
    }
    std::vector<char> answer(k_answer);
    while (true) {
        const ssize_t size = ::recv(socket.get(), answer.data(), answer.size(), 0);
        if (size <= 0) {
            return false;
        }
        std::size_t at = 0;
        while (at + sizeof(nlmsghdr) <= static_cast<std::size_t>(size)) {
            nlmsghdr header{};
            std::memcpy(&header, answer.data() + at, sizeof header);
            if (header.nlmsg_len < sizeof header ||
                at + header.nlmsg_len > static_cast<std::size_t>(size) ||
                header.nlmsg_type == NLMSG_ERROR) {
                return false;
            }
            if (header.nlmsg_type == NLMSG_DONE ||
                !take(header, answer.data() + at + NLMSG_HDRLEN)) {
                return true;
            }
            at += NLMSG_ALIGN(header.nlmsg_len);
        }
    }
}

/// Finds the socket with these endpoints; with an empty `other`, the listener at `own`.
std::optional<Socket> by_sock_diag(const Address& own, const Address& other)
{
    inet_diag_req_v2 request{};
    request.sdiag_family = static_cast<std::uint8_t>(own.family);
    request.sdiag_protocol = IPPROTO_TCP;
    request.idiag_states = ~0U;
    request.id.idiag_sport = own.port;
    request.id.idiag_dport = other.port;
    std::memcpy(request.id.idiag_src, own.address_words.data(), sizeof request.id.idiag_src);
    std::memcpy(request.id.idiag_dst, other.address_words.data(), sizeof request.id.idiag_dst);
    request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    std::optional<Socket> found;
    (void)query_kernel(request, 0, [&](const nlmsghdr& header, const char* body) {
        inet_diag_msg message{};
        if (header.nlmsg_len >= NLMSG_LENGTH(sizeof message)) {
            std::memcpy(&message, body, sizeof message);
            found = Socket{message.idiag_uid, message.idiag_inode != 0};
        }
        return false;
    });
    return found;
}

/// In the notation of /proc/net/tcp.
std::string spelled(const Address& address)
{
    std::string text;
    for (std::size_t i = 0; i < address.size(); ++i) {
        text += fmt::format("{:08X}", address.address_words[i]);
    }
    return text;
}

std::string spelled_as_six(const Address& address)
{
    return address.family == AF_INET
               ? fmt::format("{:08X}{:08X}{:08X}{}", 0, 0, htonl(0xffff), spelled(address))
               : spelled(address);
}

std::optional<Socket> by_proc(const Address& own, const Address& other)
{
    const bool listens = other.family == AF_UNSPEC;
    const std::string own_port = fmt::format(":{:04X}", ntohs(own.port));
    const std::string other_port = fmt::format(":{:04X}", ntohs(other.port));
    for (const bool six : {false, true}) {
        const auto name = [&](const Address& address) {
            return six ? spelled_as_six(address) : spelled(address);
        };
        std::ifstream table(six ? "/proc/net/tcp6" : "/proc/net/tcp");
        for (std::string line; std::getline(table, line);) {
            std::istringstream address_words(line);
            std::string number, local, remote, state, queues, timer, again;
            unsigned uid = 0;
            unsigned long timeout = 0, inode = 0;
            address_words >> number >> local >> remote >> state >> queues >> timer >> again >>
                uid >> timeout >> inode;
            const bool any_address = local == std::string(six ? 32 : 8, '0') + own_port;
            const bool match =
                listens ? state == fmt::format("{:02X}", k_tcp_listen) &&
                              (any_address || local == name(own) + own_port)
                        : local == name(own) + own_port && remote == name(other) + other_port;
            if (address_words && match) {
                return Socket{uid, inode != 0};
            }
        }
    }
    return std::nullopt;
}

std::optional<Socket> find(const Address& own, const Address& other)
{
    auto found = by_sock_diag(own, other);
    return found ? found : by_proc(own, other);
}

} // namespace

std::optional<unsigned> user_of_client(int socket)
{
    const auto there = find(address_by(::getpeername, socket), address_by(::getsockname, socket));
    return there && there->has_owner ? std::optional(there->uid) : std::nullopt;
}

std::optional<unsigned> user_of_server(int socket)
{
    const Address server = address_by(::getpeername, socket);
    const Address own = address_by(::getsockname, socket);
    const auto accepted = find(server, own);
    if (!accepted || accepted->has_owner) {
        return accepted ? std::optional(accepted->uid) : std::nullopt;
    }
    // A connection not accepted yet belongs to its listener. If it is still not accepted after the
    // listener was looked up, that was the right one.
    const auto listener = find(server, Address{});
    const auto again = find(server, own);
    if (!again || again->has_owner) {
        return again ? std::optional(again->uid) : std::nullopt;
    }
    return listener && listener->has_owner ? std::optional(listener->uid) : std::nullopt;
}

std::optional<unsigned> user_of_listener(int family, std::uint16_t port)
{
    Address address;
    address.family = static_cast<sa_family_t>(family);
    address.port = htons(port);
    address.address_words[family == AF_INET ? 0 : 3] =
        htonl(family == AF_INET ? INADDR_LOOPBACK : 1);
    const auto listener = find(address, Address{});
    return listener && listener->has_owner ? std::optional(listener->uid) : std::nullopt;
}

bool is_within_machine(int socket)
{
    const Address other = address_by(::getpeername, socket);
    return other.is_loopback() ||
           other.address_words == address_by(::getsockname, socket).address_words;
}

std::optional<unsigned> user_of_abstract_socket(const std::string& name)
{
    const std::string bound = std::string(1, '\0') + name;
    unix_diag_req request{};
    request.sdiag_family = AF_UNIX;
    request.udiag_states = ~0U;
    constexpr std::uint32_t k_show_uid = 0x40; // not in kernel headers before Linux 5.3
    constexpr int k_uid = 7;
    request.udiag_show = UDIAG_SHOW_NAME | k_show_uid;
    std::optional<unsigned> user;
    (void)query_kernel(request, NLM_F_DUMP, [&](const nlmsghdr& header, const char* body) {
        std::size_t at = NLMSG_ALIGN(sizeof(unix_diag_msg));
        const std::size_t end = header.nlmsg_len - NLMSG_HDRLEN;
        std::string_view its_name;
        std::optional<unsigned> its_user;
        while (at + sizeof(rtattr) <= end) {
            rtattr attribute{};
            std::memcpy(&attribute, body + at, sizeof attribute);
            if (attribute.rta_len < RTA_LENGTH(0) || at + attribute.rta_len > end) {
                break;
            }
            const char* const value = body + at + RTA_LENGTH(0);
            const std::size_t size = attribute.rta_len - RTA_LENGTH(0);
            if (attribute.rta_type == UNIX_DIAG_NAME) {
                its_name = {value, size};
            } else if (attribute.rta_type == k_uid && size >= sizeof(std::uint32_t)) {
                std::uint32_t uid = 0;
                std::memcpy(&uid, value, sizeof uid);
                its_user = uid;
            }
            at += RTA_ALIGN(attribute.rta_len);
        }
        // Accepted connections have the same name and the same owner.
        user = its_name == bound && its_user ? its_user : user;
        return !user;
    });
    return user;
}

} // namespace gpuq
