// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/errors.h"

#include "slurm/compat.h"
#include "slurm/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include <sys/mman.h>
#include <unistd.h>

namespace gpuq::slurm {
namespace {

std::mutex& turn()
{
    static std::mutex mutex;
    return mutex;
}

/// The mutex for libslurm requests, after libslurm has read its configuration.
std::mutex& ready_turn()
{
    load_configuration();
    return turn();
}

/// An in-memory file: libslurm needs a stream with a descriptor. Created once per process.
std::FILE* notebook()
{
    static std::FILE* const file = [] {
        const int fd = ::memfd_create("slurm-words", MFD_CLOEXEC);
        return fd < 0 ? nullptr : ::fdopen(fd, "r+");
    }();
    return file;
}

constexpr std::string_view k_marks[] = {"fatal: ", "error: ", "warning: "};

/// True for an empty text and for `program: `.
bool is_a_program(std::string_view text)
{
    return text.empty() || (text.ends_with(": ") && text.find(' ') == text.size() - 1);
}

std::string_view without_prefix(std::string_view line)
{
    for (const std::string_view mark : k_marks) {
        const auto at = line.find(mark);
        if (at != std::string_view::npos && is_a_program(line.substr(0, at))) {
            return line.substr(at + mark.size());
        }
    }
    return line;
}

struct Meaning {
    int code;
    Error::Kind kind;
};

/// For an immediate allocation: not possible at the moment, but the queue may accept it.
constexpr std::array k_not_now{
    ESLURM_NOT_TOP_PRIORITY,
    ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE,
    ESLURM_NODES_BUSY,
    ESLURM_FRAGMENTATION,
    ESLURM_DEPENDENCY,
    ESLURM_JOB_HELD,
    ESLURM_ACCOUNTING_POLICY,
    ESLURM_RESERVATION_BUSY,
    ESLURM_RESERVATION_NOT_USABLE,
    ESLURM_PORTS_BUSY,
    ESLURM_NODE_NOT_AVAIL,
    ESLURM_PARTITION_NOT_AVAIL,
    ESLURM_QOS_THRES,
    ESLURM_CAN_NOT_START_IMMEDIATELY,
    ESLURM_BURST_BUFFER_WAIT,
    ESLURM_PARTITION_DOWN,
    ESLURM_RESERVATION_MAINT,
    ESLURM_DEFER,
};

/// For all requests. Other codes are refusals, unless is_of_the_way() holds for them.
constexpr std::array k_always{
    Meaning{EAGAIN, Error::Kind::busy}, // MaxJobCount
    Meaning{2007, Error::Kind::busy},   // the same; the constant has been renamed
    Meaning{ESLURM_INVALID_JOB_ID, Error::Kind::missing},
    Meaning{ESLURM_IN_STANDBY_MODE, Error::Kind::unreachable},
    Meaning{ESLURM_IN_STANDBY_USE_BACKUP, Error::Kind::unreachable},
    Meaning{ESLURM_DB_CONNECTION, Error::Kind::unreachable},
    Meaning{ESLURM_DB_CONNECTION_INVALID, Error::Kind::unreachable},
};

/// Communication and system errors: it is unknown whether the request was carried out.
bool is_of_the_way(int code)
{
    return (code >= 0 && code < 2000) || (code >= 5000 && code < 7000);
}

/// Slurm's releases by the upper byte of their protocol version, from 22.05 on.
constexpr std::array<std::string_view, 8> k_releases{"22.05", "23.02", "23.11", "24.05",
                                                     "24.11", "25.05", "25.11", "26.05"};
constexpr unsigned k_first_protocol = 38;

/// The controller's release in libslurm's "Invalid Protocol Version 10752 from"; empty if not
/// found.
std::string release_in(std::string_view message)
{
    constexpr std::string_view k_before = "Invalid Protocol Version ";
    const auto at = message.find(k_before);
    unsigned version = 0;
    if (at == std::string_view::npos) {
        return "";
    }
    message.remove_prefix(at + k_before.size());
    std::from_chars(message.data(), message.data() + message.size(), version);
    const unsigned index = (version >> 8U) - k_first_protocol;
    return index < k_releases.size() ? std::string(k_releases.at(index)) : "";
}

} // namespace

MessageCapture::MessageCapture(std::string_view request)
    : m_turn(ready_turn())
    , m_before(stderr)
    , m_timer(log::Part::slurm, request)
{
    std::FILE* const file = notebook();
    if (file != nullptr && ::ftruncate(::fileno(file), 0) == 0) {
        std::rewind(file);
        stderr = file;
    }
    listen(this);
}

MessageCapture::~MessageCapture()
{
    if (log::is_on(log::Level::debug, log::Part::slurm)) {
        m_timer.outcome(text());
    }
    listen(nullptr);
    stderr = m_before;
}

std::string MessageCapture::text() const
{
    std::FILE* const file = notebook();
    if (file == nullptr) {
        return {};
    }
    std::fflush(file);
    std::array<char, 4096> bytes{};
    const ssize_t size = ::pread(::fileno(file), bytes.data(), bytes.size(), 0);
    return size > 0 ? tidy({bytes.data(), static_cast<std::size_t>(size)}) : std::string();
}

std::string tidy(std::string_view printed)
{
    std::string text;
    while (!printed.empty()) {
        const auto end = std::min(printed.find_first_of("\r\n"), printed.size());
        const auto line = without_prefix(printed.substr(0, end));
        if (!text.empty() && !line.empty()) {
            text +=
                std::string_view(":;,.").find(text.back()) == std::string_view::npos ? "; " : " ";
        }
        text += line;
        printed.remove_prefix(std::min(end + 1, printed.size()));
    }
    return text;
}

Error::Kind kind_of(int code, Question question)
{
    if (question == Question::start &&
        std::find(k_not_now.begin(), k_not_now.end(), code) != k_not_now.end()) {
        return Error::Kind::busy;
    }
    const auto found = std::find_if(k_always.begin(), k_always.end(),
                                    [&](const Meaning& row) { return row.code == code; });
    if (found != k_always.end()) {
        return found->kind;
    }
    return is_of_the_way(code) ? Error::Kind::unreachable : Error::Kind::denied;
}

bool means_ended(int code)
{
    return code == ESLURM_ALREADY_DONE || code == ESLURM_JOB_FINISHED ||
           code == ESLURM_INVALID_JOB_ID;
}

bool never_sent(int code)
{
    return code == SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR;
}

std::optional<std::string> policy_message(const std::string& message)
{
    constexpr std::string_view k_mark = "gpuq: ";
    constexpr std::string_view k_of_sbatch = "; Batch job submission failed: ";
    if (!message.starts_with(k_mark)) {
        return std::nullopt;
    }
    std::string text = message.substr(k_mark.size(), message.rfind(k_of_sbatch) - k_mark.size());
    for (std::size_t at = text.find(k_mark); at != std::string::npos; at = text.find(k_mark, at)) {
        text.erase(at, k_mark.size());
    }
    return text;
}

std::string library_version()
{
    return fmt::format("{}.{:02}.{}", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
                       SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER),
                       SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER));
}

std::optional<std::string> protocol_mismatch(int code, std::string_view message)
{
    // libslurm can't unpack the response of a newer controller, and prints its version. An older
    // controller closes the connection, as it does if munge rejects the credential.
    constexpr std::string_view k_sign = "Incompatible versions of client and server code";
    if (message.find(k_sign) != std::string_view::npos || code == SLURM_PROTOCOL_VERSION_ERROR) {
        const std::string release = release_in(message);
        return fmt::format("slurmctld{} and gpuq's libslurm {} are incompatible releases; build "
                           "gpuq with the cluster's own Slurm",
                           release.empty() ? "" : " " + release, library_version());
    }
    if (code == SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT && message.empty()) {
        return fmt::format("{}: slurmctld does not accept the request; either it is older than "
                           "gpuq's libslurm {} (`scontrol -V` prints the site's release: build "
                           "gpuq with that), or munge's key or clock here differs",
                           slurm_strerror(code), library_version());
    }
    return std::nullopt;
}

std::optional<std::string> munge_failure(std::string_view message)
{
    constexpr std::string_view k_sign = "Munge encode failed: ";
    const auto at = message.find(k_sign);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    message.remove_prefix(at + k_sign.size());
    return fmt::format("munged of this machine, which authenticates requests to Slurm, does not "
                       "respond; an operator must restart it ({})",
                       message.substr(0, message.find("; ")));
}

Error error_of(int code, Question question, std::string_view what, const std::string& message)
{
    log::debug(log::Part::slurm, "{}: code {} ({})", what, code, slurm_strerror(code));
    for (const auto& cause : {protocol_mismatch(code, message), munge_failure(message)}) {
        if (cause) {
            return fail(kind_of(code, question), fmt::format("{}: {}", what, *cause));
        }
    }
    const std::string meaning = slurm_strerror(code);
    if (const auto output = policy_message(message)) { // complete; `meaning` would only be a guess
        return fail(kind_of(code, question), fmt::format("{}: {}", what, *output));
    }
    if (message.empty() && code == ESLURM_ACCOUNTING_POLICY) {
        return fail(kind_of(code, question),
                    fmt::format("{}: {}; you may have reached your limit of pending and running "
                                "jobs: gpuq ls, gpuq policy explain",
                                what, meaning));
    }
    if (message.empty()) {
        return fail(kind_of(code, question), fmt::format("{}: {}", what, meaning));
    }
    if (code == SLURM_ERROR) { // usual for job_submit.lua; means "Unspecified error"
        return fail(kind_of(code, question), fmt::format("{}: {}", what, message));
    }
    return fail(kind_of(code, question), fmt::format("{}: {} ({})", what, message, meaning));
}

} // namespace gpuq::slurm
