// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/askpass.h"

#include "io/trusted_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

/// Protocol on the socket: ssh's hint ($SSH_ASKPASS_PROMPT), NUL, the question, end of file.
/// Response: `A`, the answer, end of file; without the `A` the user has refused.
namespace gpuq::remote {
namespace {

constexpr std::string_view k_name = "gpuq-askpass";
constexpr const char* k_socket = "/socket";
constexpr char k_answered = 'A';
constexpr std::size_t k_longest_on_socket = 2 * k_longest_question;
constexpr std::string_view k_nothing_asked = "none"; ///< a value of the hint

std::optional<sockaddr_un> address_of(const std::string& path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return std::nullopt;
    }
    path.copy(static_cast<char*>(address.sun_path), path.size());
    return address;
}

/// Creates a private directory, in the user's runtime directory if there is one. After su(1) that
/// is another user's, who could replace the directory and receive the answers.
std::string make_directory()
{
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    const bool is_own = runtime != nullptr && runtime[0] == '/' && open_trusted_directory(runtime);
    for (const char* const parent : {is_own ? runtime : "/tmp", "/tmp"}) {
        std::string directory = fmt::format("{}/gpuq-ask-XXXXXX", parent);
        if (address_of(directory + k_socket) && ::mkdtemp(directory.data()) != nullptr) {
            return directory;
        }
    }
    return {};
}

void remove_directory(const std::string& directory)
{
    for (const std::string& each :
         {directory + k_socket, fmt::format("{}/{}", directory, k_name)}) {
        ::unlink(each.c_str());
    }
    ::rmdir(directory.c_str());
}

Descriptor unix_socket(int flags)
{
    return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

/// Reads to the end of file, or until there are more than `most` bytes.
std::string read_all(int socket, std::size_t most)
{
    std::string text;
    std::array<char, 1024> buffer;
    ssize_t count = 0;
    while (text.size() <= most && (count = ::read(socket, buffer.data(), buffer.size())) > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    ::explicit_bzero(buffer.data(), buffer.size());
    return text;
}

} // namespace

AskPass::AskPass(std::string directory, Descriptor listener)
    : m_directory(std::move(directory))
    , m_listener(std::move(listener))
{
}

AskPass::AskPass(AskPass&& other) noexcept
    : m_directory(std::exchange(other.m_directory, {}))
    , m_listener(std::move(other.m_listener))
    , m_asker(std::move(other.m_asker))
    , m_read(other.m_read)
    , m_text(std::move(other.m_text))
{
}

AskPass::~AskPass()
{
    if (!m_directory.empty()) {
        remove_directory(m_directory);
    }
}

Result<AskPass> AskPass::open(const std::string& gpuq)
{
    const std::string directory = make_directory();
    if (directory.empty()) {
        return fail(Error::Kind::io, fmt::format("can't make a directory for ssh prompts: /tmp: {}",
                                                 std::strerror(errno)));
    }
    AskPass made(directory, unix_socket(SOCK_NONBLOCK));
    const auto address = address_of(directory + k_socket);
    if (!made.m_listener || !address ||
        ::bind(made.m_listener.get(), reinterpret_cast<const sockaddr*>(&*address),
               sizeof *address) != 0 ||
        ::listen(made.m_listener.get(), 4) != 0 ||
        ::symlink(gpuq.c_str(), made.program().c_str()) != 0) {
        return fail(Error::Kind::io, fmt::format("{}: {}", directory, std::strerror(errno)));
    }
    return made;
}

std::string AskPass::program() const
{
    return fmt::format("{}/{}", m_directory, k_name);
}

std::optional<Question> AskPass::next()
{
    if (m_read) { // the asking process was killed
        m_asker.reset();
        m_read = false;
        return std::nullopt;
    }
    if (!m_asker) {
        m_asker.reset(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        m_text.clear();
    }
    std::array<char, 1024> buffer;
    ssize_t count = -1;
    while (m_asker && (count = ::read(m_asker.get(), buffer.data(), buffer.size())) > 0) {
        const std::size_t left = k_longest_on_socket - m_text.size();
        m_text.append(buffer.data(), std::min(static_cast<std::size_t>(count), left));
    }
    if (count != 0) {
        if (m_asker && errno != EAGAIN && errno != EINTR) {
            m_asker.reset();
        }
        return std::nullopt;
    }
    m_read = true;
    const std::size_t hint = std::min(m_text.find('\0'), m_text.size());
    const bool asks = std::string_view(m_text).substr(0, hint) != k_nothing_asked;
    m_text.erase(0, hint + 1);
    m_text.resize(std::min(m_text.size(), k_longest_question));
    return Question{std::exchange(m_text, {}), asks};
}

void AskPass::answer(std::string_view text)
{
    if (m_asker) {
        std::string bytes(1, k_answered);
        bytes.reserve(text.size() + 1);
        bytes += text;
        (void)!::send(m_asker.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        ::explicit_bzero(bytes.data(), bytes.size());
    }
    m_asker.reset();
    m_read = false;
}

bool AskPass::is_name(std::string_view program)
{
    return program.substr(program.rfind('/') + 1) == k_name;
}

int AskPass::run(const std::string& program, const std::string& question)
{
    constexpr std::size_t k_longest_answer = 8192;
    const auto address = address_of(program.substr(0, program.rfind('/')) + k_socket);
    const Descriptor socket = unix_socket(0);
    if (!address || !socket ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) !=
            0) {
        return 1;
    }
    const char* const hint = std::getenv("SSH_ASKPASS_PROMPT");
    const std::string text =
        std::string(hint == nullptr ? "" : hint) + '\0' + question.substr(0, k_longest_question);
    if (!write_all(socket.get(), text) || ::shutdown(socket.get(), SHUT_WR) != 0) {
        return 1;
    }
    std::string answer = read_all(socket.get(), k_longest_answer);
    const bool answered =
        answer.starts_with(k_answered) && write_all(STDOUT_FILENO, answer.substr(1) + "\n");
    ::explicit_bzero(answer.data(), answer.size());
    return answered ? 0 : 1;
}

} // namespace gpuq::remote
