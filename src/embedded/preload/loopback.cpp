// SPDX-License-Identifier: GPL-2.0-or-later
// Loaded into Slurm's daemons (LD_PRELOAD) by `gpuq cluster up`: makes sockets that would be bound
// to all addresses of the machine listen on the loopback interface.
//
// Slurm's own option, CommunicationParameters=NoInAddrAny, binds to the address to which the host
// name resolves: on most machines 127.0.1.1, where other daemons do not find it, or the network
// address, which is public. Jobs do not inherit the variable: slurmstepd gives them the environment
// of their owner.
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" __attribute__((visibility("default"))) int bind(int fd, const sockaddr* address,
                                                           socklen_t size) noexcept
{
    sockaddr_in loopback{};
    if (address != nullptr && size >= sizeof loopback && address->sa_family == AF_INET) {
        std::memcpy(&loopback, address, sizeof loopback);
        if (loopback.sin_addr.s_addr == htonl(INADDR_ANY)) {
            loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        }
        return static_cast<int>(syscall(SYS_bind, fd, &loopback, sizeof loopback));
    }
    return static_cast<int>(syscall(SYS_bind, fd, address, size));
}
