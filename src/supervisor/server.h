// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "supervisor/descriptor.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The unix socket on the node through which relays and guards come. Only processes of the same
/// user are let in; the folder is the user's, 0700, no symbolic link.
class Server {
public:
    /// `path` lies in `folder`, which is made if need be. A stale socket of that name goes.
    static Result<Server> listen(const std::string& folder, const std::string& path);
    ~Server();
    Server(Server&&) noexcept = default;
    Server& operator=(Server&&) noexcept = default;

    int fd() const { return m_socket.get(); }
    /// A client, non-blocking; nothing when there is none. One for whom there is no descriptor
    /// is given those bytes, and is gone.
    Descriptor accept(std::string_view refusal);
    /// The next client is given those bytes, and is gone.
    void turn_away(std::string_view refusal);

private:
    Server(Descriptor socket, std::string path);
    Descriptor next();
    Descriptor m_socket;
    Descriptor m_spare; ///< given up to turn a client away when there are no descriptors left
    std::string m_path;
};

/// Connects to a supervisor of the same user. `missing` when none listens there.
Result<Descriptor> connect_to(const std::string& folder, const std::string& path);

} // namespace gpuq::supervisor
