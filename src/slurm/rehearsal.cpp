// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/rehearsal.h"

#include "core/lower_case.h"
#include "io/descriptor.h"
#include "slurm/command.h"
#include "slurm/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::slurm {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr int k_deepest = 8;
constexpr int k_closed_port = 4; ///< a port without a service
constexpr const char* k_lives = "Running as primary controller";
constexpr const char* k_caches[] = {"assoc_mgr_state", "last_tres"};
constexpr const char* k_cluster_name = "clustername";

/// Keys to drop: those that are set again below, and everything that starts a program, contacts
/// another host or writes to another place.
constexpr std::string_view k_dropped[] = {"accountingstoragebackuphost",
                                          "accountingstorageexternalhost",
                                          "accountingstoragehost",
                                          "accountingstorageport",
                                          "backupaddr",
                                          "backupcontroller",
                                          "burstbuffertype",
                                          "controladdr",
                                          "controlmachine",
                                          "debugflags",
                                          "epilogslurmctld",
                                          "federationparameters",
                                          "healthcheckprogram",
                                          "jobcomptype",
                                          "mailprog",
                                          "prologslurmctld",
                                          "rebootprogram",
                                          "resumefailprogram",
                                          "resumeprogram",
                                          "slurmctlddebug",
                                          "slurmctldhost",
                                          "slurmctldlogfile",
                                          "slurmctldpidfile",
                                          "slurmctldport",
                                          "slurmctldprimaryoffprog",
                                          "slurmctldprimaryonprog",
                                          "slurmctldsyslogdebug",
                                          "slurmdport",
                                          "statesavelocation",
                                          "suspendprogram",
                                          "suspendtime",
                                          "unkillablestepprogram"};

/// Lines without comments, continued lines joined.
std::vector<std::string> lines_of(const std::string& text)
{
    std::vector<std::string> lines;
    std::istringstream stream(text);
    std::string whole;
    for (std::string line; std::getline(stream, line);) {
        line.erase(std::min(line.find('#'), line.size()));
        const bool continues = line.ends_with('\\');
        line.erase(line.size() - (continues ? 1 : 0));
        whole += line;
        if (!continues) {
            lines.push_back(std::exchange(whole, {}));
        }
    }
    return lines;
}

std::vector<std::string> program_arguments(const std::string& line)
{
    std::istringstream stream(line);
    return {std::istream_iterator<std::string>(stream), {}};
}

std::string key_of(const std::string& word)
{
    return lower_case(word.substr(0, word.find('=')));
}

bool is_dropped(const std::string& key)
{
    return std::find(std::begin(k_dropped), std::end(k_dropped), key) != std::end(k_dropped);
}

std::string node_line(const std::vector<std::string>& arguments)
{
    std::string line;
    for (const std::string& word : arguments) {
        const std::string key = key_of(word);
        if (key != "nodeaddr" && key != "port" && key != "bcastaddr") {
            line += word + " ";
        }
    }
    const bool defaults = lower_case(arguments.front()) == "nodename=default";
    return defaults ? line : fmt::format("{}NodeAddr=127.0.0.1 Port={}", line, k_closed_port);
}

/// Keeps only QOS that are in the cache.
std::string partition_line(const std::vector<std::string>& arguments, const std::string& qos)
{
    std::string line;
    for (const std::string& word : arguments) {
        const std::string key = key_of(word);
        const bool names = key == "qos" || key == "allowqos" || key == "denyqos";
        if (!names || qos.find(word.substr(word.find('=') + 1)) != std::string::npos) {
            line += word + " ";
        }
    }
    return line;
}

void add_text(std::string& to, const std::string& text,
              const std::function<std::string(const std::string&)>& included,
              const Rehearsal& rehearsal, int depth)
{
    for (const std::string& line : lines_of(text)) {
        const auto arguments = program_arguments(line);
        if (arguments.empty()) {
            continue;
        }
        const std::string key = key_of(arguments.front());
        if (key == "include" && arguments.size() > 1 && depth < k_deepest) {
            add_text(to, included(arguments[1]), included, rehearsal, depth + 1);
        } else if (key == "nodename") {
            to += node_line(arguments) + "\n";
        } else if (key == "partitionname") {
            to += partition_line(arguments, rehearsal.qos) + "\n";
        } else if (key == "communicationparameters") {
            to += arguments.front() + ",NoCtldInAddrAny\n";
        } else if (!is_dropped(key)) {
            to += line + "\n";
        }
    }
}

std::string content(const fs::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A temporary directory, removed with its contents.
class Directory {
public:
    Directory()
        : m_path("/tmp/gpuq-rehearsal-XXXXXX")
    {
        m_made = ::mkdtemp(m_path.data()) != nullptr;
    }
    ~Directory()
    {
        std::error_code ignored;
        if (m_made) {
            fs::remove_all(m_path, ignored);
        }
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    explicit operator bool() const { return m_made; }
    fs::path path() const { return m_path; }

private:
    std::string m_path;
    bool m_made = false;
};

int free_port()
{
    const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket.get(), raw, size) != 0 || ::getsockname(socket.get(), raw, &size) != 0) {
        return 0;
    }
    return ntohs(address.sin_port);
}

std::string short_host_name()
{
    std::array<char, 256> name{};
    (void)::gethostname(name.data(), name.size() - 1);
    const std::string whole(name.data());
    return whole.substr(0, whole.find('.'));
}

Result<void> put(const fs::path& path, const std::string& text)
{
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    return file ? Result<void>()
                : fail(Error::Kind::io, fmt::format("{} can't be written", path.string()));
}

/// slurmctld runs as SlurmUser if root starts it.
void give_to(const std::string& user, const fs::path& directory)
{
    const passwd* const entry =
        ::geteuid() == 0 && !user.empty() ? ::getpwnam(user.c_str()) : nullptr;
    if (entry == nullptr) {
        return;
    }
    (void)!::chown(directory.c_str(), entry->pw_uid, entry->pw_gid);
    std::error_code ignored;
    for (const auto& file : fs::recursive_directory_iterator(directory, ignored)) {
        (void)!::lchown(file.path().c_str(), entry->pw_uid, entry->pw_gid);
    }
}

/// Copies the controller's cache of accounting data: without it, a slurmctld that can't reach
/// slurmdbd does not start. Returns the contents.
Result<std::string> copy_cache(const std::string& from, const fs::path& to)
{
    std::string all;
    for (const char* const name : k_caches) {
        const std::string bytes = content(fs::path(from) / name);
        if (bytes.empty()) {
            return fail(Error::Kind::denied,
                        fmt::format("can't read {}/{}, which the rehearsal needs: be root or "
                                    "SlurmUser, on the controller's host",
                                    from, name));
        }
        TRY(put(to / name, bytes));
        all += bytes;
    }
    // From Slurm 24.11 on the file contains `NAME|ID`; without it slurmctld waits for slurmdbd to
    // provide the id. In earlier releases its presence would make slurmctld require all other state
    // files.
    if (const std::string bytes = content(fs::path(from) / k_cluster_name);
        bytes.find('|') != std::string::npos) {
        TRY(put(to / k_cluster_name, bytes));
    }
    return all;
}

/// Copies gres.conf, cgroup.conf, topology.conf and the like.
void copy_others(const fs::path& from, const fs::path& to)
{
    std::error_code ignored;
    for (const auto& file : fs::directory_iterator(from, ignored)) {
        const fs::path name = file.path().filename();
        if (file.is_regular_file(ignored) && name.extension() == ".conf" && name != "slurm.conf" &&
            name != "slurmdbd.conf") {
            fs::copy_file(file.path(), to / name, ignored);
        }
    }
}

/// The lines that contain the reason; if there are none, the end of the output.
std::string reasons_in(const std::string& output)
{
    std::string reasons;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        const bool reports_error = line.find("fatal:") != std::string::npos ||
                                   line.find("Parse error") != std::string::npos ||
                                   line.find("TRES weight") != std::string::npos ||
                                   line.find("nvalid node") != std::string::npos ||
                                   line.find("job_submit/lua") != std::string::npos;
        reasons += reports_error ? line + "\n" : "";
    }
    return tidy(reasons.empty() ? output.substr(output.size() > 500 ? output.size() - 500 : 0)
                                : reasons);
}

Result<void> start(const fs::path& conf)
{
    // timeout(1) ends it if this process dies first.
    TRY_ASSIGN(
        const CommandAnswer answer,
        run_command({"timeout", "--signal=KILL", "60", "slurmctld", "-D", "-f", conf.string()}, 50s,
                    [](const CommandAnswer& so_far) {
                        return so_far.err.find(k_lives) != std::string::npos;
                    }));
    if (answer.err.find(k_lives) == std::string::npos) {
        return fail(
            Error::Kind::usage,
            fmt::format("slurmctld does not start with the new files: {}", reasons_in(answer.err)));
    }
    if (answer.err.find("error: job_submit/lua") != std::string::npos) {
        return fail(Error::Kind::usage, fmt::format("slurmctld does not load the new script: {}",
                                                    reasons_in(answer.err)));
    }
    return {};
}

} // namespace

std::string value_in(const std::string& conf, const std::string& key)
{
    std::string value;
    for (const std::string& line : lines_of(conf)) {
        const auto arguments = program_arguments(line);
        if (!arguments.empty() && key_of(arguments.front()) == lower_case(key)) {
            value = arguments.front().substr(arguments.front().find('=') + 1);
        }
    }
    return value;
}

std::string rehearsal_conf(const std::string& text,
                           const std::function<std::string(const std::string&)>& included,
                           const Rehearsal& rehearsal)
{
    std::string conf;
    add_text(conf, text, included, rehearsal, 0);
    conf += fmt::format("SlurmctldHost={}(127.0.0.1)\n"
                        "SlurmctldPort={}\n"
                        "StateSaveLocation={}/state\n"
                        "SlurmctldPidFile={}/slurmctld.pid\n"
                        "SlurmctldDebug=info\n"
                        "AccountingStorageHost=127.0.0.1\n"
                        "AccountingStoragePort={}\n",
                        rehearsal.host, rehearsal.port, rehearsal.directory, rehearsal.directory,
                        k_closed_port);
    if (value_in(conf, "CommunicationParameters").empty()) {
        conf += "CommunicationParameters=NoCtldInAddrAny\n";
    }
    return conf;
}

Result<void> rehearse(const fs::path& conf, const std::string& include_path,
                      const std::string& include, const std::string& script)
{
    const Directory directory;
    if (!directory) {
        return fail(Error::Kind::io,
                    fmt::format("can't make a directory in /tmp for the rehearsal: {}",
                                std::strerror(errno)));
    }
    const auto included = [&](const std::string& name) {
        const fs::path path = (conf.parent_path() / name).lexically_normal();
        return path == fs::path(include_path) ? include : content(path);
    };
    const std::string text = content(conf);
    std::error_code ignored;
    fs::create_directory(directory.path() / "state", ignored);
    std::string state = value_in(text, "StateSaveLocation");
    state = state.empty() ? "/var/spool" : state;
    TRY_ASSIGN(std::string cache, copy_cache(state, directory.path() / "state"));
    const Rehearsal rehearsal{directory.path(), short_host_name(), free_port(), std::move(cache)};
    copy_others(conf.parent_path(), directory.path());
    TRY(put(directory.path() / "job_submit.lua", script));
    TRY(put(directory.path() / "slurm.conf", rehearsal_conf(text, included, rehearsal)));
    give_to(value_in(text, "SlurmUser"), directory.path());
    return start(directory.path() / "slurm.conf");
}

} // namespace gpuq::slurm
