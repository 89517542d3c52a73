// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/ssh_keygen.h"

#include "io/private_dir.h"
#include "io/subprocess.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>

namespace gpuq {
namespace {

/// Private directory for the two files that ssh-keygen writes.
class KeyDirectory {
public:
    explicit KeyDirectory(PrivateDir directory)
        : m_directory(std::move(directory))
    {
    }
    ~KeyDirectory()
    {
        ::unlink(secret().c_str());
        ::unlink((secret() + ".pub").c_str());
        ::rmdir(m_directory.path.c_str());
    }
    KeyDirectory(const KeyDirectory&) = delete;
    KeyDirectory& operator=(const KeyDirectory&) = delete;

    std::string secret() const { return m_directory.path + "/key"; }

private:
    PrivateDir m_directory;
};

std::string text_of(const std::string& path)
{
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

/// Type and key of a public key file, without the comment, which would reveal user and host.
std::string without_comment(const std::string& line)
{
    std::istringstream fields(line);
    std::string type;
    std::string key;
    fields >> type >> key;
    return fmt::format("{} {}", type, key);
}

} // namespace

Result<SshKeyPair> make_ssh_key()
{
    TRY_ASSIGN(PrivateDir made, make_private_dir("key"));
    const KeyDirectory key_directory(std::move(made));
    int status = 0;
    for (const char* type : {"ed25519", "ecdsa"}) {
        TRY_ASSIGN(const Finished finished, run({.argv = {"ssh-keygen", "-q", "-t", type, "-N", "",
                                                          "-C", "", "-f", key_directory.secret()}},
                                                {.streams = Capture::Streams::none}));
        status = finished.status;
        if (status == 0) {
            return SshKeyPair{text_of(key_directory.secret()),
                              without_comment(text_of(key_directory.secret() + ".pub"))};
        }
    }
    return status == 127
               ? fail(Error::Kind::not_found,
                      "no ssh-keygen in PATH: install OpenSSH's client on this machine")
               : fail(Error::Kind::io, fmt::format("ssh-keygen left with status {}", status));
}

} // namespace gpuq
