// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/tensorboard_server.h"

#include "core/exit_status.h"
#include "io/subprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace gpuq::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_program =
#include "cli/host/tensorboard.py.inc"
    ;

Error no_tensorboard(const std::string& why)
{
    return fail(Error::Kind::not_found,
                fmt::format("TensorBoard: not found ({}): activate an environment that has it, or "
                            "install it in one: `python3 -m venv ~/tb && ~/tb/bin/pip install "
                            "tensorboard`, then add ~/tb/bin to PATH",
                            why));
}

/// A child that ends with this process.
Result<pid_t> start_child(Subprocess plan)
{
    plan.group = Subprocess::Group::own;
    plan.death_signal = SIGTERM;
    TRY_ASSIGN(Spawned process, spawn(plan));
    if (const auto failure = failure_of(process)) {
        (void)wait_for(process.pid);
        return fail(failure->error == ENOENT ? Error::Kind::not_found : Error::Kind::io,
                    fmt::format("{}: {}", plan.argv.front(),
                                std::generic_category().message(failure->error)));
    }
    return process.pid;
}

/// Below `base`; of a file elsewhere only its own directory.
fs::path directory_for(const fs::path& file, const std::string& base)
{
    const fs::path below = file.parent_path().lexically_relative(base);
    const bool is_below = !below.empty() && *below.begin() != "..";
    return is_below ? below : file.parent_path().filename();
}

} // namespace

Result<TensorboardServer> TensorboardServer::make()
{
    TRY_ASSIGN(PrivateDir directory, make_private_dir("tensorboard"));
    TensorboardServer server(std::move(directory));
    std::error_code error;
    fs::create_directory(server.path("runs"), error);
    return error ? Result<TensorboardServer>(
                       fail(Error::Kind::io, "can't write to the local /tmp: " + error.message()))
                 : Result<TensorboardServer>(std::move(server));
}

TensorboardServer::TensorboardServer(TensorboardServer&& other) noexcept
    : m_directory(std::exchange(other.m_directory, {}))
    , m_server(std::exchange(other.m_server, -1))
    , m_gate(std::exchange(other.m_gate, -1))
{
}

TensorboardServer::~TensorboardServer()
{
    for (const pid_t child : {m_server, m_gate}) {
        if (child > 0) {
            kill_and_reap(child);
        }
    }
    std::error_code error;
    if (!m_directory.path.empty()) {
        fs::remove_all(m_directory.path, error); // the links, not the event files
    }
}

Result<void> TensorboardServer::show(const std::string& title, const std::string& base,
                                     const std::vector<std::string>& files)
{
    std::string name = title;
    std::replace(name.begin(), name.end(), '/', '_');
    for (const std::string& file : files) {
        const fs::path directory = fs::path(path("runs")) / name / directory_for(file, base);
        std::error_code error;
        fs::create_directories(directory, error);
        if (!error) {
            fs::create_symlink(file, directory / fs::path(file).filename(), error);
        }
        if (error && error != std::errc::file_exists) {
            return fail(Error::Kind::io,
                        fmt::format("{}: {}", directory.string(), error.message()));
        }
    }
    return {};
}

Result<void> TensorboardServer::start(std::vector<std::string> environment,
                                      const std::string& supervisor, const std::string& gate)
{
    std::ofstream(path("serve.py")) << k_program;
    const Descriptor log(::open(path("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (log.get() < 0) {
        return fail(Error::Kind::io, "can't write to the local /tmp");
    }
    // TensorBoard stores its address in TMPDIR.
    std::erase_if(environment, [](const std::string& one) { return one.starts_with("TMPDIR="); });
    environment.push_back("TMPDIR=" + m_directory.path);
    auto server = start_child({.argv = {"python3", path("serve.py"), path("runs"), path("s")},
                               .environment = std::move(environment),
                               .descriptors = {Subprocess::k_null, log.get(), log.get()}});
    if (!server) {
        return server.error().kind == Error::Kind::not_found ? no_tensorboard(server.error().text)
                                                             : server.error();
    }
    m_server = *server;
    TRY_ASSIGN(m_gate, start_child({.argv = {supervisor, "gate", gate, path("s")}}));
    return {};
}

std::optional<Error> TensorboardServer::ended()
{
    const auto status = m_server > 0 ? exit_code_if_ended(m_server) : std::nullopt;
    if (!status) {
        return std::nullopt;
    }
    m_server = -1;
    if (*status == static_cast<int>(ExitStatus::not_found)) {
        return no_tensorboard(last_line());
    }
    return fail(Error::Kind::io,
                fmt::format("TensorBoard has ended with status {}: {}", *status, last_line()));
}

std::string TensorboardServer::last_line() const
{
    std::ifstream file(path("log"));
    std::string last;
    for (std::string line; std::getline(file, line);) {
        last = line.empty() ? last : line;
    }
    return last;
}

} // namespace gpuq::cli
