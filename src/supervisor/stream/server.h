// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "supervisor/base/descriptor.h"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// The socket on the node (io/local_socket.h) to which relays, guards and clients on this node
/// connect, from whom only processes of the same user are accepted; or a port of this host, to
/// which anybody can connect.
class Server {
public:
    enum class Kind { local, network };
    /// Listens at the first free name; appends to `taken` why earlier names were not used.
    static Result<Server> listen(const std::vector<std::string>& names, std::vector<Error>& taken);

    /// Listens on a free port of the address that leads to `peer`, a numeric address, else of the
    /// one that leads anywhere else, else of the loopback interface.
    static Result<Server> listen_on_network(const std::string& peer);

    Kind kind() const { return m_kind; }
    int fd() const { return m_socket.get(); }
    /// Accepts a client, non-blocking; empty if there is none. If no descriptor is left for the
    /// client, it is sent `refusal`, unless over the network, and dropped.
    Descriptor accept(std::string_view refusal);
    /// Sends `refusal` to the next client and drops it.
    void turn_away(std::string_view refusal);

private:
    Server(Kind kind, Descriptor socket);
    Descriptor next();
    bool accepts(int client) const;
    void refuse(int client, std::string_view refusal) const;
    Kind m_kind;
    Descriptor m_socket;
    Descriptor m_spare; ///< closed to turn a client away when no descriptors are left
};

/// Hands a client's streams over through a connection (SCM_RIGHTS, unix(7)): from then on the
/// supervisor reads and writes them itself, and no process in between has to wake up for each
/// piece. On failure returns false and sets errno.
bool give_streams(int socket, int input, int output);

struct Streams {
    Descriptor input, output;
};
/// Like read(2), for a connection over which streams may be handed over.
ssize_t read_with_streams(int socket, char* bytes, std::size_t size,
                          std::optional<Streams>& streams);

} // namespace gpuq::supervisor
