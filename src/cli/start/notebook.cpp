// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/verbs.h"

#include "cli/base/message.h"
#include "cli/base/table_output.h"
#include "cli/host/local_ports.h"
#include "cli/host/port_forwarder.h"
#include "cli/render/listening_document.h"
#include "cli/start/notebook_carry.h"
#include "cli/start/run_options.h"
#include "core/quote.h"
#include "runs/notebook.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Two processes: this one listens on the user's machine and prints the address; the one that it
// starts with --carry, on the login host if one is given, starts the run and reaches its node. So
// a login is needed only once.

namespace gpuq::cli {
namespace {

/// The part of `gpuq notebook` at the user's machine.
class NotebookFront {
public:
    explicit NotebookFront(Invocation& invocation)
        : m_invocation(invocation)
        , m_called(gpuq_as_typed(invocation))
    {
    }

    Result<int> run()
    {
        Signals signals;
        TRY_ASSIGN(const auto port, port_in(m_invocation.options));
        TRY_ASSIGN(LocalPort local, listen_for_page(port));
        m_port = local.port;
        TRY_ASSIGN(m_command, gpuq_there(m_invocation));
        ForwarderOptions options;
        options.listeners.push_back(std::move(local.listeners));
        options.command = [this](bool again) { return command(again); };
        options.greeting = [this](std::string_view line) { return take(line); };
        options.greets_when_connected = true;
        options.result = [](int status) {
            const bool has_ended =
                status == 0 || status == static_cast<int>(exit_status_of(Error::Kind::missing));
            return has_ended ? std::optional(0) : lasting_failure(status);
        };
        options.print_message = [](std::string_view text) { print_message(text); };
        options.connected = [this] { show(); };
        TRY_ASSIGN(const int status, forward_ports(std::move(options), signals));
        if (m_address && (status == static_cast<int>(ExitStatus::interrupted) ||
                          status == static_cast<int>(ExitStatus::detached))) {
            print_note(
                m_invocation.globals.quiet,
                fmt::format("detached: the notebook continues; back to it: {}; end it: {} stop {}",
                            command_again(), m_called, m_address->job));
        }
        return status;
    }

private:
    std::vector<std::string> command(bool again) const
    {
        std::vector<std::string> argv = m_command;
        argv.insert(argv.end(), {"notebook", "--carry"});
        if (again) {
            argv.push_back("--only=" + m_address->key);
            return argv;
        }
        const auto given = arguments_of(m_invocation.options, notebook_option_table());
        argv.insert(argv.end(), given.begin(), given.end());
        argv.emplace_back("--");
        argv.insert(argv.end(), m_invocation.arguments.begin(), m_invocation.arguments.end());
        return argv;
    }

    /// The line may come from another host.
    Result<void> take(std::string_view line)
    {
        auto address = notebook_address_from(line);
        if (!address || (m_address && address->key != m_address->key)) {
            return fail(Error::Kind::internal, "protocol error: no address of a notebook");
        }
        m_address = std::move(address);
        return {};
    }

    void show()
    {
        const std::string url = fmt::format("http://localhost:{}{}?token={}", m_port,
                                            m_address->page, m_address->token);
        print_address(url);
        print_note(m_invocation.globals.quiet,
                   fmt::format("Ctrl-C detaches; back to it: {}; end it: {} stop {}",
                               command_again(), m_called, m_address->job));
        if (m_invocation.options.has("browser")) {
            auto page = BrowserPage::open(m_invocation.services.variable("BROWSER"), url);
            if (page) {
                m_browser.emplace(*std::move(page));
            } else {
                print_message(
                    fmt::format("--browser: {}; open the address above", page.error().text));
            }
        }
    }

    /// A reader that is gone needs no address.
    void print_address(const std::string& url) const
    {
        (void)print_text(m_invocation.globals.json
                             ? report::json_document(notebook_document(
                                   {url, m_port}, m_address->key, JobId{m_address->job}))
                             : url + "\n");
        std::fflush(stdout);
    }

    std::string command_again() const
    {
        std::string text = m_called + " notebook";
        for (const std::string& each : m_invocation.arguments) {
            text += " " + shell_quoted(each);
        }
        return text;
    }

    Invocation& m_invocation;
    std::string m_called;
    std::vector<std::string> m_command;
    std::uint16_t m_port = 0;
    std::optional<NotebookAddress> m_address;
    std::optional<BrowserPage> m_browser;
};

Result<int> notebook(Invocation& invocation)
{
    const Options& options = invocation.options;
    if (invocation.arguments.size() > 1) {
        return fail(Error::Kind::usage, "notebook: one directory at most");
    }
    if (options.has("lab") && options.has("classic")) {
        return fail(Error::Kind::usage, "--lab: --classic is given as well: choose one of them");
    }
    TRY(notebook_idle(options));
    return options.has("carry") ? carry_notebook_of(invocation) : NotebookFront(invocation).run();
}

} // namespace

const Verb k_notebook_verb{"notebook", "gpuq notebook [options] [DIR]",
                           "Jupyter on a GPU, in your own browser", notebook,
                           notebook_option_table()};

} // namespace gpuq::cli
