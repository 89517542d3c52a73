// SPDX-License-Identifier: GPL-2.0-or-later
// Loaded into Slurm's daemons (LD_PRELOAD) by `gpuq cluster up`: a socket for every address of the
// machine becomes one for the loopback interface.
//
// Slurm's own way, CommunicationParameters=NoInAddrAny, binds to whatever the host's name resolves
// to: on most machines 127.0.1.1 or the address of the network, where nothing finds it or
// everybody does. Jobs do not inherit this: slurmstepd gives them the environment of their owner.
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
