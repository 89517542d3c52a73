// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/result.h"
#include "io/descriptor.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// For the verbs that listen on ports of this machine, even if the rest of their work is done on
/// another host: `gpuq forward`, `gpuq notebook`, `gpuq tensorboard`.
namespace gpuq::cli {

/// Whether the verb runs on this machine although --host is given: the process that it starts there
/// has `--carry`.
bool listens_here(std::string_view verb);

/// The beginning of a command line of gpuq for the host of the invocation, or for this one.
Result<std::vector<std::string>> gpuq_there(Invocation& invocation);
/// The same as the user would type it: `gpuq --host login1`.
std::string gpuq_as_typed(const Invocation& invocation);

/// The options given, as arguments; those of `table` only.
std::vector<std::string> arguments_of(const Options& options, std::span<const Option> table);

/// The value of --port, if it is given. `usage`.
Result<std::optional<std::uint16_t>> port_in(const Options& options);

struct LocalPort {
    std::uint16_t port = 0;
    std::vector<Descriptor> listeners;
};
/// Listens on this port, or on the first free one from 8888 on. `usage` if it is in use.
Result<LocalPort> listen_for_page(std::optional<std::uint16_t> port);

/// Opens a page in the user's browser ($BROWSER, else xdg-open), without waiting for it. Other
/// users can see arguments but not `file`, which redirects to the page: the caller removes it.
class BrowserPage {
public:
    /// `browser`: the value of $BROWSER. `missing`, `io`.
    static Result<BrowserPage> open(const std::optional<std::string>& browser,
                                    const std::string& url);
    BrowserPage(BrowserPage&& other) noexcept
        : m_directory(std::exchange(other.m_directory, ""))
        , m_lock(std::move(other.m_lock))
    {
    }
    BrowserPage& operator=(BrowserPage&&) = delete;
    ~BrowserPage();

private:
    BrowserPage(std::string directory, Descriptor lock)
        : m_directory(std::move(directory))
        , m_lock(std::move(lock))
    {
    }
    std::string m_directory;
    Descriptor m_lock;
};

} // namespace gpuq::cli
