// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/run_door.h"

#include "remote/channel.h"
#include "remote/ssh_words.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

constexpr const char* k_parent = "/tmp/";
constexpr std::string_view k_name = "gpuq-forward-";
constexpr std::time_t k_young = 60;

std::string read_all(int descriptor)
{
    std::string text;
    std::array<char, 4096> buffer;
    ssize_t count = 0;
    while ((count = ::read(descriptor, buffer.data(), buffer.size())) > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
}

/// What gpuq has said first, where it has; ssh only adds that its way in is closed, and srun, now
/// before and now after it, that a step has failed.
std::string reason_in(std::string_view errors)
{
    constexpr std::string_view k_gpuq = "gpuq: ";
    constexpr std::string_view k_srun = "srun: ";
    std::string_view left = errors;
    for (std::size_t found = 0; (found = left.find(k_gpuq)) != std::string_view::npos;) {
        left.remove_prefix(found + k_gpuq.size());
        if (!left.starts_with(k_srun)) {
            return last_words(left.substr(0, left.find('\n')));
        }
    }
    return last_words(errors);
}

/// A folder of sockets and a file or two.
void remove_folder(const std::string& folder)
{
    if (DIR* const entries = ::opendir(folder.c_str())) {
        while (const dirent* const entry = ::readdir(entries)) {
            ::unlinkat(::dirfd(entries), static_cast<const char*>(entry->d_name), 0);
        }
        ::closedir(entries);
    }
    ::rmdir(folder.c_str());
}

/// Its owner holds the lock for as long as it lives, however it ends.
Descriptor locked(const std::string& folder)
{
    Descriptor made(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (made && ::flock(made.get(), LOCK_EX | LOCK_NB) != 0) {
        made.reset();
    }
    return made;
}

/// Folders of ours whose owner was killed. One that was made just now has no lock yet.
void remove_left_behind()
{
    DIR* const entries = ::opendir(k_parent);
    if (entries == nullptr) {
        return;
    }
    while (const dirent* const entry = ::readdir(entries)) {
        const std::string_view name(static_cast<const char*>(entry->d_name));
        const std::string path = fmt::format("{}{}", k_parent, name);
        struct stat facts {};
        if (name.starts_with(k_name) && ::lstat(path.c_str(), &facts) == 0 &&
            S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid() &&
            facts.st_mtim.tv_sec + k_young < ::time(nullptr) && locked(path)) {
            remove_folder(path);
        }
    }
    ::closedir(entries);
}

} // namespace

RunDoor::RunDoor(std::string program, wire::remote::Start start)
    : m_program(std::move(program))
    , m_start(std::move(start))
{
}

RunDoor::~RunDoor()
{
    end();
}

void RunDoor::end()
{
    if (m_process && !m_ended) {
        ::kill(-m_process->pid, SIGTERM);
    }
    m_process.reset();
    if (!m_folder.empty()) {
        remove_folder(std::exchange(m_folder, {}));
        m_lock.reset();
    }
}

Result<void> RunDoor::open(const wire::remote::Following& run)
{
    if (m_process && !m_ended && run.key == m_key && run.job == m_job) {
        return {};
    }
    end();
    remove_left_behind();
    std::string folder = fmt::format("{}{}XXXXXX", k_parent, k_name);
    if (::mkdtemp(folder.data()) == nullptr) {
        return fail(Error::Kind::io, fmt::format("{}: {}", folder, std::strerror(errno)));
    }
    m_folder = folder;
    m_lock = locked(folder);
    m_key = run.key;
    m_job = run.job;
    wire::remote::Start start = m_start;
    start.terminals = {};
    start.folder = std::string("/");
    start.words = {"connect", "--forward-from", folder, run.key};
    start.words.insert(start.words.end(), m_start.forwards.begin(), m_start.forwards.end());
    TRY_ASSIGN(m_process, start_verb(m_program, start));
    m_ended = false;
    m_process->input.reset();
    m_process->out.reset();
    set_nonblocking(m_process->err.get());
    return {};
}

Result<Descriptor> RunDoor::reach(std::size_t forward)
{
    if (!m_process || m_ended) {
        const std::string words =
            m_process ? reason_in(read_all(m_process->err.get())) : std::string();
        return fail(Error::Kind::io, words.empty() ? "there is no way into the run" : words);
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = fmt::format("{}/{}", m_folder, forward);
    path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (made &&
        ::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        made.reset();
    }
    return made;
}

void RunDoor::on_child(pid_t pid)
{
    m_ended = m_ended || (m_process && m_process->pid == pid);
}

} // namespace gpuq::remote
