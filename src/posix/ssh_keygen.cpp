// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/ssh_keygen.h"

#include "core/words.h"
#include "io/private_dir.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

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
    std::istringstream words(line);
    std::string type;
    std::string key;
    words >> type >> key;
    return fmt::format("{} {}", type, key);
}

/// Runs a program with all streams on /dev/null; returns its exit status, 127 if it cannot be
/// started.
int run_quietly(const std::vector<std::string>& words)
{
    const std::vector<char*> arguments = pointers(words);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        ::posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
    }
    pid_t pid = -1;
    const int error =
        ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    while (error == 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return error == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

} // namespace

Result<SshKeyPair> make_ssh_key()
{
    TRY_ASSIGN(PrivateDir made, make_private_dir("key"));
    const KeyDirectory folder(std::move(made));
    int status = 0;
    for (const char* type : {"ed25519", "ecdsa"}) {
        status = run_quietly(
            {"ssh-keygen", "-q", "-t", type, "-N", "", "-C", "", "-f", folder.secret()});
        if (status == 0) {
            return SshKeyPair{text_of(folder.secret()),
                              without_comment(text_of(folder.secret() + ".pub"))};
        }
    }
    return status == 127
               ? fail(Error::Kind::not_found,
                      "no ssh-keygen in PATH: install OpenSSH's client on this machine")
               : fail(Error::Kind::io, fmt::format("ssh-keygen left with status {}", status));
}

} // namespace gpuq
