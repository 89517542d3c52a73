// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/machine.h"

#include "embedded/process.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <linux/magic.h>
#include <map>
#include <netdb.h>
#include <netinet/in.h>
#include <random>
#include <sstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

namespace fs = std::filesystem;

constexpr int k_console_terminals = 64;
constexpr int k_most_gpus = 1024;

bool is_character_device(const std::string& path)
{
    struct stat facts {};
    return stat(path.c_str(), &facts) == 0 && S_ISCHR(facts.st_mode);
}

/// The value in a line `Key:  value` of the text.
std::string field(std::string_view text, std::string_view key)
{
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(key)) {
            const std::size_t first = line.find_first_not_of(": \t", key.size());
            return first == std::string::npos ? "" : line.substr(first);
        }
    }
    return "";
}

/// Models by device number N in /dev/nvidiaN.
std::map<int, std::string> models_of_the_driver()
{
    std::map<int, std::string> models;
    std::error_code none;
    for (const auto& gpu : fs::directory_iterator("/proc/driver/nvidia/gpus", none)) {
        const std::string text = content_of(gpu.path() / "information");
        models[minor_in(text)] = model_in(text);
    }
    return models;
}

/// The same from `nvidia-smi -L`: `GPU 0: Tesla K80 (UUID: ...)`, for containers without that
/// /proc.
std::map<int, std::string> models_of_nvidia_smi()
{
    std::map<int, std::string> models;
    const auto program = find_program("nvidia-smi", std::getenv("PATH"));
    if (!program) {
        return models;
    }
    const auto listed = run_command({{*program, "-L"}, {}}, in(std::chrono::seconds(10)));
    std::istringstream lines(listed && listed->status == 0 ? listed->output : "");
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(": ");
        const std::size_t uuid = line.find(" (UUID");
        int number = 0;
        if (line.starts_with("GPU ") && colon < uuid &&
            std::from_chars(line.data() + 4, line.data() + line.size(), number).ec == std::errc{}) {
            models[number] = line.substr(colon + 2, uuid - colon - 2);
        }
    }
    return models;
}

Result<std::vector<GpuDevice>> links_to_null(int count, const std::string& model,
                                             const std::string& directory)
{
    std::vector<GpuDevice> gpus;
    std::error_code failed;
    fs::create_directories(directory, failed);
    for (int index = 0; index < count; ++index) {
        const std::string link = fmt::format("{}/gpu{}", directory, index);
        if (!is_character_device(link)) {
            fs::create_symlink("/dev/null", link, failed);
        }
        if (!is_character_device(link)) {
            return fail(Error::Kind::io,
                        fmt::format("can not make {}: {}", link, failed.message()));
        }
        gpus.push_back({model, link});
    }
    return gpus;
}

sockaddr_in loopback(int port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
}

/// Calls `action` (bind, connect) with a new socket; true when it succeeds.
template <typename Action>
bool succeeds(Action action, int port)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    const int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    const bool fine = action(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    return fine;
}

bool can_write_all(std::initializer_list<std::string> directories)
{
    return std::all_of(directories.begin(), directories.end(), [](const std::string& directory) {
        return access((directory + "/cgroup.procs").c_str(), W_OK) == 0;
    });
}

bool has_all_parts(const std::string& text, std::initializer_list<std::string_view> parts)
{
    std::istringstream stream(text);
    const std::vector<std::string> found{std::istream_iterator<std::string>(stream), {}};
    return std::all_of(parts.begin(), parts.end(), [&](std::string_view word) {
        return std::find(found.begin(), found.end(), word) != found.end();
    });
}

/// A process in more than one hierarchy means that v1 is mounted as well, with which Slurm's
/// cgroup/v2 plugin exits.
bool is_alone(const std::string& lines)
{
    return std::count(lines.begin(), lines.end(), '\n') <= 1;
}

Cgroups cgroups_v2(const std::string& root)
{
    if (!is_alone(content_of("/proc/1/cgroup")) || !is_alone(content_of("/proc/self/cgroup"))) {
        return {"", "v1 hierarchies are mounted beside cgroup v2"};
    }
    if (!has_all_parts(content_of(root + "/cgroup.controllers"), {"cpuset", "memory"})) {
        return {"", "cgroup v2 without the cpuset and memory controllers"};
    }
    if (!can_write_all({root})) {
        return {"", root + " can't be written, as in a container"};
    }
    if (!has_systemd()) {
        return {"", "no systemd here to delegate a part of cgroup v2"};
    }
    return {"cgroup/v2", ""};
}

} // namespace

std::string model_in(std::string_view information)
{
    return field(information, "Model");
}

int minor_in(std::string_view information)
{
    const std::string text = field(information, "Device Minor");
    int number = -1;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::string gres_type(std::string_view model)
{
    for (const std::string_view maker : {"NVIDIA ", "Tesla ", "GeForce "}) {
        if (model.starts_with(maker)) {
            model.remove_prefix(maker.size());
        }
    }
    std::string type;
    for (const char c : model) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = std::isalnum(byte) != 0 || c == '-' || c == '.';
        type += plain ? static_cast<char>(std::tolower(byte)) : '_';
    }
    return type;
}

std::vector<GpuDevice> real_gpus()
{
    std::vector<int> numbers;
    for (int number = 0; number < k_most_gpus; ++number) {
        if (is_character_device(fmt::format("/dev/nvidia{}", number))) {
            numbers.push_back(number);
        }
    }
    auto models = models_of_the_driver();
    if (!numbers.empty() && models.empty()) {
        models = models_of_nvidia_smi();
    }
    std::vector<GpuDevice> gpus;
    for (const int number : numbers) {
        gpus.push_back({gres_type(models[number]), fmt::format("/dev/nvidia{}", number)});
    }
    return gpus;
}

Result<std::vector<GpuDevice>> stand_in_gpus(int count, const std::string& model,
                                             const std::string& directory)
{
    if (count < 0 || count > k_most_gpus) {
        return fail(Error::Kind::usage,
                    fmt::format("--gpus {}: give a number from 0 to {}", count, k_most_gpus));
    }
    std::vector<GpuDevice> gpus;
    for (int index = 0; index < std::min(count, k_console_terminals); ++index) {
        gpus.push_back({model, fmt::format("/dev/tty{}", index)});
    }
    const bool enough = count <= k_console_terminals &&
                        std::all_of(gpus.begin(), gpus.end(), [](const GpuDevice& gpu) {
                            return is_character_device(gpu.file);
                        });
    return enough ? gpus : links_to_null(count, model, directory);
}

int core_count()
{
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::uint64_t memory_mib()
{
    struct sysinfo facts {};
    sysinfo(&facts);
    return std::max<std::uint64_t>(1, facts.totalram * facts.mem_unit / (1024 * 1024));
}

Cgroups cgroups_here()
{
    const std::string root = "/sys/fs/cgroup";
    struct statfs facts {};
    if (geteuid() != 0) {
        return {"", "that needs root"};
    }
    if (statfs(root.c_str(), &facts) == 0 && facts.f_type == CGROUP2_SUPER_MAGIC) {
        return cgroups_v2(root);
    }
    if (!fs::is_directory(root + "/memory")) {
        return {"", "no cgroups are mounted at " + root};
    }
    if (!can_write_all({root + "/freezer", root + "/memory", root + "/devices"})) {
        return {"", "freezer, memory and devices below " + root + " can't be written"};
    }
    return {"cgroup/v1", ""};
}

bool has_systemd()
{
    return fs::is_directory("/run/systemd/system");
}

std::string boot_id()
{
    std::string text = content_of("/proc/sys/kernel/random/boot_id");
    text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
    return text;
}

bool own_name_is_loopback()
{
    std::string name(256, '\0');
    gethostname(name.data(), name.size() - 1);
    addrinfo wanted{};
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0 || found == nullptr) {
        return false;
    }
    sockaddr_in first{};
    std::memcpy(&first, found->ai_addr, sizeof first);
    freeaddrinfo(found);
    return first.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

Result<void> check_addresses()
{
    addrinfo wanted{};
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_ADDRCONFIG;
    addrinfo* found = nullptr;
    if (getaddrinfo("127.0.0.1", nullptr, &wanted, &found) != 0) {
        return fail(Error::Kind::io,
                    "without a network Slurm does not find 127.0.0.1 either; an address for "
                    "documentation (RFC 5737) helps: sudo ip address add 192.0.2.1/32 dev lo");
    }
    freeaddrinfo(found);
    return {};
}

bool is_free(int port)
{
    return !answers(port) && succeeds(bind, port);
}

bool answers(int port)
{
    return succeeds(connect, port);
}

Result<std::vector<int>> free_ports(int count)
{
    // Linux uses 32768 and above for outgoing connections, which could take a port first.
    constexpr int k_first = 20000;
    constexpr int k_last = 32000;
    constexpr int k_attempts = 4000;
    std::random_device random;
    std::uniform_int_distribution<int> pick(k_first, k_last);
    std::vector<int> ports;
    for (int attempt = 0; attempt < k_attempts && std::ssize(ports) < count; ++attempt) {
        const int port = pick(random);
        if (std::find(ports.begin(), ports.end(), port) == ports.end() && is_free(port)) {
            ports.push_back(port);
        }
    }
    if (std::ssize(ports) < count) {
        return fail(Error::Kind::busy,
                    fmt::format("no {} free TCP ports between {} and {} on 127.0.0.1; `ss -ltnp` "
                                "lists the listeners",
                                count, k_first, k_last));
    }
    return ports;
}

} // namespace gpuq::embedded
