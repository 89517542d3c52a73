// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/daemons.h"

#include "embedded/directory.h"
#include "embedded/process.h"
#include "embedded/tools.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

using std::chrono::seconds;

constexpr auto k_start_limit = seconds(30);
constexpr auto k_end_limit = seconds(10);

bool is_interrupted()
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
           sigismember(&pending, SIGHUP) == 1;
}

} // namespace

bool listens(const std::string& path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return false;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool fine = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    return fine;
}

Error died(const Places& places, const std::string& daemon)
{
    const std::string log = places.output_file(daemon);
    const std::string last_output = last_message(log);
    const bool full = last_output.find("No space left") != std::string::npos;
    return fail(Error::Kind::io,
                fmt::format("{} did not start{}; the end of {}:\n{}", daemon,
                            full ? ", the disk is full: make room or choose another --dir" : "",
                            log, last_output));
}

Result<void> wait_until(const Start& start, const std::string& daemon,
                        const std::function<bool()>& ready)
{
    const Daemon* dead = nullptr;
    const auto decided = [&] {
        for (const Daemon& one : start.state.daemons) {
            if (!is_alive(one.process)) {
                dead = &one;
            }
        }
        return dead != nullptr || is_interrupted() || ready();
    };
    const bool in_time = wait_for(decided, in(k_start_limit));
    if (is_interrupted()) {
        return fail(Error::Kind::stopped, "interrupted; nothing has been left running");
    }
    if (dead != nullptr) {
        return died(start.places, dead->name);
    }
    return in_time ? Result<void>() : died(start.places, daemon);
}

bool is_running(const Start& start, const std::string& name)
{
    const auto& daemons = start.state.daemons;
    return std::any_of(daemons.begin(), daemons.end(),
                       [&](const Daemon& daemon) { return daemon.name == name; });
}

Result<void> launch(Start& start, const std::string& name, const std::string& program_name,
                    std::vector<std::string> options)
{
    if (is_running(start, name)) {
        return {};
    }
    TRY_ASSIGN(std::string path, program(program_name));
    options.insert(options.begin(), std::move(path));
    unlink(
        start.places.output_file(name).c_str()); // messages of an earlier start would be misleading
    std::vector<std::string> environment = environment_of(start.places);
    if (program_name.starts_with("slurm")) {
        TRY_ASSIGN(const std::string library, loopback_library());
        environment.push_back("LD_PRELOAD=" + library);
    }
    TRY_ASSIGN(const ProcessId process, start_daemon({std::move(options), std::move(environment)},
                                                     start.places.output_file(name)));
    start.state.daemons.push_back({name, process});
    return {};
}

void end_daemon(Start& start, const std::string& name)
{
    std::erase_if(start.state.daemons, [&](const Daemon& daemon) {
        if (daemon.name != name) {
            return false;
        }
        if (!end_processes({daemon.process}, SIGTERM, in(k_end_limit))) {
            end_processes({daemon.process}, SIGKILL, in(k_end_limit));
        }
        return true;
    });
}

} // namespace gpuq::embedded
