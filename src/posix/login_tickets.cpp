// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/login_tickets.h"

#include "core/strings.h"
#include "io/descriptor.h"
#include "io/trusted_path.h"
#include "posix/krb5_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_largest = 1 << 20;
constexpr const char* k_configuration = "/etc/krb5.conf";
/// A credential daemon responds immediately or not at all.
constexpr auto k_patience = 3000ms;
constexpr char k_well = '+'; ///< first byte of a successful answer from the separate process

Error problem(const std::string& path)
{
    const int error = errno;
    return fail(error == ENOENT || error == ENOTDIR ? Error::Kind::missing : Error::Kind::io,
                fmt::format("{}: {}", path, std::strerror(error)));
}

/// Reads a file of the calling user: tickets of other users are refused, even if named by a
/// variable.
Result<std::string> read_own(const std::string& path)
{
    // open_trusted_file allows symbolic links, since the user chose the path, and does not block on
    // a FIFO.
    TRY_ASSIGN(const Descriptor file, open_trusted_file(path));
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0) {
        return problem(path);
    }
    if (facts.st_uid != ::geteuid()) {
        return fail(Error::Kind::denied, fmt::format("{} is not owned by you", path));
    }
    if (static_cast<std::size_t>(facts.st_size) > k_largest) {
        return fail(Error::Kind::io, fmt::format("{} is too large for tickets", path));
    }
    std::string bytes(static_cast<std::size_t>(facts.st_size), '\0');
    const ssize_t size = ::pread(file.get(), bytes.data(), bytes.size(), 0);
    if (size < 0) {
        return problem(path);
    }
    bytes.resize(static_cast<std::size_t>(size));
    return bytes;
}

std::optional<std::string> text_of(const std::string& path)
{
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::string text(64 << 10, '\0');
    const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : -1;
    if (size < 0) {
        return std::nullopt;
    }
    text.resize(static_cast<std::size_t>(size));
    return text;
}

std::vector<std::string> files_in(const std::string& directory)
{
    std::vector<std::string> paths;
    const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(directory.c_str()), ::closedir);
    while (const dirent* entry = list ? ::readdir(list.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (!name.starts_with('.')) {
            paths.push_back(fmt::format("{}/{}", directory, name));
        }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

void replace_all(std::string& text, std::string_view what, const std::string& with)
{
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
        text.replace(at, what.size(), with);
        at += with.size();
    }
}

/// `DIR:/path`: the cache named in its file `primary`; `DIR::/path/tktX`: that cache.
Result<std::string> read_dir(const std::string& place)
{
    if (place.starts_with(':')) {
        return read_own(place.substr(1));
    }
    const auto primary = text_of(place + "/primary");
    const std::string name(primary ? trimmed(cut(*primary, '\n').first) : "tkt");
    if (!name.starts_with("tkt") || name.find('/') != std::string::npos) {
        return fail(Error::Kind::io, fmt::format("{}/primary names no cache", place));
    }
    return read_own(place + "/" + name);
}

} // namespace

std::string
default_cache_in(const std::string& text,
                 const std::function<std::optional<std::string>(const std::string&)>& file,
                 const std::function<std::vector<std::string>(const std::string&)>& list)
{
    std::istringstream lines(text);
    std::string line, section;
    while (std::getline(lines, line)) {
        line = std::string(trimmed(line));
        std::vector<std::string> included;
        if (line.starts_with("includedir ")) {
            included = list(std::string(trimmed(line.substr(11))));
        } else if (line.starts_with("include ")) {
            included = {std::string(trimmed(line.substr(8)))};
        } else if (line.starts_with('[')) {
            section = line;
        }
        for (const std::string& path : included) {
            const auto more = file(path);
            // Only one level, so that a file including itself does not loop.
            const std::string found =
                more ? default_cache_in(
                           *more, [](const std::string&) { return std::nullopt; },
                           [](const std::string&) { return std::vector<std::string>{}; })
                     : "";
            if (!found.empty()) {
                return found;
            }
        }
        const auto equals = line.find('=');
        if (section == "[libdefaults]" && equals != std::string::npos &&
            trimmed(line.substr(0, equals)) == "default_ccache_name") {
            return std::string(trimmed(line.substr(equals + 1)));
        }
    }
    return "";
}

std::string PosixLoginTickets::name() const
{
    if (const auto named = m_variable("KRB5CCNAME"); named && !named->empty()) {
        return *named;
    }
    const auto paths = m_variable("KRB5_CONFIG").value_or(k_configuration);
    const auto text = text_of(paths.substr(0, paths.find(':')));
    std::string name = text ? default_cache_in(*text, text_of, files_in) : "";
    const std::string uid = fmt::format("{}", ::getuid());
    for (const char* const part : {"%{uid}", "%{USERID}", "%{euid}"}) {
        replace_all(name, part, uid);
    }
    replace_all(name, "%{TEMP}", "/tmp");
    return name.empty() ? fmt::format("FILE:/tmp/krb5cc_{}", uid) : name;
}

Result<std::string> PosixLoginTickets::by_library(const std::string& name)
{
    const auto answers = m_host.apart(
        {[&]() -> std::string {
            const auto bytes = cache_by_krb5(name);
            const bool none = !bytes && bytes.error().kind == Error::Kind::missing;
            return bytes ? k_well + *bytes : none ? std::string("0") : "-" + bytes.error().text;
        }},
        k_patience);
    const Host::Answer& answer = answers.front();
    if (answer.kind == Host::Answer::Kind::late) {
        return fail(Error::Kind::io,
                    fmt::format("{}: the credential cache does not respond", name));
    }
    if (answer.kind == Host::Answer::Kind::died || answer.text.empty()) {
        return fail(Error::Kind::io, fmt::format("{} can't be read", name));
    }
    if (answer.text[0] == k_well) {
        return answer.text.substr(1);
    }
    return fail(answer.text[0] == '0' ? Error::Kind::missing : Error::Kind::io,
                answer.text.substr(1));
}

Result<std::string> PosixLoginTickets::cache()
{
    const std::string name = this->name();
    const auto colon = name.find(':');
    const std::string type = name.starts_with('/') ? "FILE" : name.substr(0, colon);
    const std::string place =
        name.starts_with('/') || colon == std::string::npos ? name : name.substr(colon + 1);
    if (type == "FILE" || type == "WRFILE") {
        return read_own(place);
    }
    if (type == "DIR") {
        return read_dir(place);
    }
    if (type == "MEMORY") {
        return fail(Error::Kind::missing, "a cache in the memory of another process");
    }
    return by_library(name);
}

Result<std::string> PosixLoginTickets::token()
{
    const auto is_blank = [](const std::string& text) {
        return text.find_first_not_of(" \t\n\v\f\r") == std::string::npos;
    };
    if (auto value = m_variable("BEARER_TOKEN"); value && !is_blank(*value)) {
        return *std::move(value);
    }
    std::vector<std::string> places;
    if (auto named = m_variable("BEARER_TOKEN_FILE"); named && !named->empty()) {
        places.push_back(*std::move(named));
    }
    const std::string name = fmt::format("bt_u{}", ::geteuid());
    if (const auto directory = m_variable("XDG_RUNTIME_DIR");
        directory && directory->starts_with('/')) {
        places.push_back(fmt::format("{}/{}", *directory, name));
    }
    places.push_back("/tmp/" + name);
    for (const std::string& place : places) {
        auto text = read_own(place);
        if (text ? !is_blank(*text) : text.error().kind != Error::Kind::missing) {
            return text;
        }
    }
    return fail(Error::Kind::missing, "no bearer token");
}

} // namespace gpuq
