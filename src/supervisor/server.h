// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "supervisor/descriptor.h"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// The socket on the node (core/local_socket.h) through which relays, guards and the clients that
/// are on this node themselves come. Only processes of the same user are let in.
class Server {
public:
    /// At the first name that nobody has; appends why it was not the ones before.
    static Result<Server> listen(const std::vector<std::string>& names, std::vector<Error>& taken);

    int fd() const { return m_socket.get(); }
    /// A client, non-blocking; nothing when there is none. One for whom there is no descriptor
    /// is given those bytes, and is gone.
    Descriptor accept(std::string_view refusal);
    /// The next client is given those bytes, and is gone.
    void turn_away(std::string_view refusal);

private:
    explicit Server(Descriptor socket);
    Descriptor next();
    Descriptor m_socket;
    Descriptor m_spare; ///< given up to turn a client away when there are no descriptors left
};

/// Hands a client's streams through a connection (SCM_RIGHTS, unix(7)): the supervisor reads and
/// writes them itself from now on, and nobody has to be woken for each piece. False: errno.
bool give_streams(int socket, int input, int output);

struct Streams {
    Descriptor input, output;
};
/// As read(2), of a connection over which streams may come.
ssize_t read_with_streams(int socket, char* bytes, std::size_t size,
                          std::optional<Streams>& streams);

} // namespace gpuq::supervisor
