// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/local_ports.h"

#include "core/number.h"
#include "core/quote.h"
#include "core/split_arguments.h"
#include "io/private_dir.h"
#include "io/subprocess.h"
#include "remote/forward.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <unistd.h>

namespace gpuq::cli {
namespace {

constexpr std::uint16_t k_first_port = 8888;
constexpr std::uint16_t k_most_ports = 100;
/// Connections wait meanwhile.
constexpr std::chrono::milliseconds k_browser_patience{500};
constexpr const char* k_page_file = "notebook.html";

std::string redirection_to(const std::string& url)
{
    return fmt::format("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"refresh\" "
                       "content=\"0; url={0}\">\n<title>Notebook</title>\n<a "
                       "href=\"{0}\">Notebook</a>\n",
                       url);
}

Result<void> write_page(const std::string& directory, const std::string& text)
{
    const Descriptor place(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const Descriptor file(::openat(place.get(), k_page_file,
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file || !write_all(file.get(), text)) {
        return fail(Error::Kind::io,
                    fmt::format("{}/{}: {}", directory, k_page_file, std::strerror(errno)));
    }
    return {};
}

/// The exit status of a command that fails at once, such as xdg-open without a browser; else 0.
int early_status(pid_t pid)
{
    const auto until = std::chrono::steady_clock::now() + k_browser_patience;
    while (std::chrono::steady_clock::now() < until) {
        if (const auto status = exit_code_if_ended(pid)) {
            return *status;
        }
        ::usleep(5000);
    }
    return 0;
}

} // namespace

bool listens_here(std::string_view verb)
{
    return verb == "forward" || verb == "notebook" || verb == "tensorboard";
}

Result<std::vector<std::string>> gpuq_there(Invocation& invocation)
{
    TRY_ASSIGN(std::string program, invocation.services.program());
    std::vector<std::string> command{std::move(program)};
    if (const auto host = invocation.options.value("host")) {
        command.insert(command.end(), {"--host", *host});
    }
    if (!invocation.globals.cluster.empty()) {
        command.insert(command.end(), {"--cluster", invocation.globals.cluster});
    }
    if (invocation.globals.quiet) {
        command.emplace_back("-Q");
    }
    return command;
}

std::string gpuq_as_typed(const Invocation& invocation)
{
    const auto host = invocation.options.value("host");
    return host ? "gpuq --host " + shell_quoted(*host) : "gpuq";
}

std::vector<std::string> arguments_of(const Options& options, std::span<const Option> table)
{
    std::vector<std::string> arguments;
    for (const Option& row : table) {
        for (const std::string& value : options.values(row.name)) {
            arguments.push_back(row.value.empty() ? fmt::format("--{}", row.name)
                                                  : fmt::format("--{}={}", row.name, value));
        }
    }
    return arguments;
}

Result<std::optional<std::uint16_t>> port_in(const Options& options)
{
    const auto text = options.value("port");
    if (!text) {
        return std::optional<std::uint16_t>{};
    }
    const auto number = whole_number(*text);
    if (!number || *number == 0 || *number > std::numeric_limits<std::uint16_t>::max()) {
        return fail(Error::Kind::usage,
                    fmt::format("--port: '{}' is not a number from 1 to 65535", sanitised(*text)));
    }
    return std::optional(static_cast<std::uint16_t>(*number));
}

Result<LocalPort> listen_for_page(std::optional<std::uint16_t> port)
{
    const std::uint16_t first = port.value_or(k_first_port);
    const std::uint16_t count = port ? 1 : k_most_ports;
    Error error = fail(Error::Kind::usage, "no free port");
    for (std::uint16_t number = 0; number < count; ++number) {
        const auto here = static_cast<std::uint16_t>(first + number);
        auto listeners = remote::listen_here(here);
        if (listeners) {
            return LocalPort{here, *std::move(listeners)};
        }
        error = std::move(listeners).error();
    }
    return error;
}

Result<BrowserPage> BrowserPage::open(const std::optional<std::string>& browser,
                                      const std::string& url)
{
    std::vector<std::string> argv{"xdg-open"};
    if (browser && !browser->empty()) {
        // A list of commands separated by colons; `%s` is replaced by the page.
        TRY_ASSIGN(argv, split_arguments(browser->substr(0, browser->find(':'))));
    }
    if (argv.empty()) {
        return fail(Error::Kind::usage, "BROWSER: empty command");
    }
    TRY_ASSIGN(PrivateDir directory, make_private_dir("browser"));
    BrowserPage page(directory.path, std::move(directory.lock));
    TRY(write_page(page.m_directory, redirection_to(url)));
    const std::string file = fmt::format("file://{}/{}", page.m_directory, k_page_file);
    const auto place = std::find(argv.begin(), argv.end(), "%s");
    if (place != argv.end()) {
        *place = file;
    } else {
        argv.push_back(file);
    }
    TRY_ASSIGN(Spawned process, spawn({.argv = argv, .group = Subprocess::Group::session}));
    if (const auto failure = failure_of(process)) {
        (void)wait_for(process.pid);
        return fail(Error::Kind::missing,
                    fmt::format("{}: {}", argv.front(), std::strerror(failure->error)));
    }
    if (const int status = early_status(process.pid); status != 0) {
        return fail(Error::Kind::missing,
                    fmt::format("{}: failed with status {}", argv.front(), status));
    }
    return page;
}

BrowserPage::~BrowserPage()
{
    if (!m_directory.empty()) {
        ::unlink((m_directory + "/" + k_page_file).c_str());
        ::rmdir(m_directory.c_str());
    }
}

} // namespace gpuq::cli
