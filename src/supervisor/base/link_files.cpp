// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/link_files.h"

#include "core/layout.h"
#include "core/timestamp.h"
#include "io/trusted_path.h"
#include "runs/credentials.h"
#include "runs/idle.h"
#include "runs/records/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <chrono>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr const char* k_claim = "claim";
constexpr const char* k_connect = "connect";
constexpr std::size_t k_max_file = 4 << 20;
constexpr int k_directory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::chrono::hours k_release_counts{1};
/// Of the nodes; a note further in the future is that of a node whose clock was wrong.
constexpr std::chrono::minutes k_clocks_differ{5};
constexpr int k_written = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;

Error open_error(const std::string& path)
{
    const int error = errno;
    return fail(error == ENOENT ? Error::Kind::missing : Error::Kind::io,
                fmt::format("{}: {}", path, error_text(error)));
}

void open_if_closed(Descriptor& file, int directory, const char* name)
{
    if (!file && directory >= 0) {
        file.reset(::openat(directory, name, k_written, 0600));
    }
}

} // namespace

Result<std::string> read_file(int directory, const char* name)
{
    const Descriptor file(
        ::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        return open_error(name);
    }
    std::string text;
    char piece[16384];
    while (true) {
        const ssize_t size = ::read(file.get(), piece, sizeof piece);
        if (size == 0) {
            return text;
        }
        if (size < 0 || text.size() > k_max_file) {
            return size < 0 ? open_error(name)
                            : fail(Error::Kind::io, fmt::format("{}: too large", name));
        }
        text.append(piece, static_cast<std::size_t>(size));
    }
}

namespace {

/// Atomic, also across a crash: if several processes create it, the first one's stays.
void make_secret(int root, const std::string& name)
{
    SipKey key{};
    if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
        return;
    }
    const std::string part = fmt::format(".{}.{}", name, ::getpid());
    ::unlinkat(root, part.c_str(), 0); // left by a killed process with the same number
    const Descriptor file(
        ::openat(root, part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file && write_all(file.get(), fmt::format("{:02x}", fmt::join(key, ""))) &&
        ::fsync(file.get()) == 0) {
        (void)!::linkat(root, part.c_str(), root, name.c_str(), 0);
    }
    ::unlinkat(root, part.c_str(), 0);
}

/// The time in the file; that of its last change if it has none. Nullopt if the file is gone.
std::optional<Time> time_of_release(int directory, const char* name)
{
    const auto text = read_file(directory, name);
    if (const auto at = text ? time_from_iso8601(*text) : std::nullopt) {
        return at;
    }
    struct stat status {};
    if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return std::nullopt;
    }
    return Time(std::chrono::seconds(status.st_mtim.tv_sec));
}

/// Counts the releases in the hour before `now`, and removes the files of older ones. Nullopt if
/// the directory cannot be read.
std::optional<int> releases_in_hour(int directory, Time now)
{
    const int copy = ::openat(directory, ".", k_directory);
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : ::fdopendir(copy),
                                                      &::closedir);
    if (!listing) {
        return std::nullopt;
    }
    int count = 0;
    while (const dirent* entry = ::readdir(listing.get())) {
        const auto at =
            entry->d_name[0] == '.' ? std::nullopt : time_of_release(directory, entry->d_name);
        if (at && *at < now - k_release_counts) {
            ::unlinkat(directory, entry->d_name, 0);
        } else if (at && *at <= now + k_clocks_differ) {
            ++count;
        }
    }
    return count;
}

} // namespace

NodeNames node_names(const std::string& state_dir)
{
    const auto root = open_trusted_directory(state_dir);
    if (!root) {
        return {};
    }
    const std::string name = layout::secret();
    auto secret = read_file(root->get(), name.c_str());
    if (!secret && secret.error().kind == Error::Kind::missing) {
        make_secret(root->get(), name);
        secret = read_file(root->get(), name.c_str()); // ours, or that of a faster process
    }
    return NodeNames(secret ? *secret : "");
}

Result<RunDirectory> RunDirectory::open(const std::string& state_dir, const RunKey& key)
{
    // Only the path to the state directory may contain symbolic links; home directories often do.
    // On this node the path may lead to another place than where the run was recorded, one that
    // others can write.
    TRY_ASSIGN(const Descriptor root, open_trusted_directory(state_dir));
    const Descriptor runs(::openat(root.get(), layout::runs().c_str(), k_directory));
    if (!runs) {
        return open_error(fmt::format("{}/{}", state_dir, layout::runs()));
    }
    Descriptor run(::openat(runs.get(), key.text().c_str(), k_directory));
    if (!run) {
        return open_error(fmt::format("{}/{}", state_dir, layout::run_dir(key)));
    }
    return RunDirectory(std::move(run));
}

Result<Run> RunDirectory::read_run() const
{
    TRY_ASSIGN(const std::string text, read_file(m_directory.get(), "run.json"));
    TRY_ASSIGN(Run run, run_from_json(text));
    const auto changed = read_file(m_directory.get(), "walltime.json");
    if (const auto change = changed ? walltime_change_from_json(*changed)
                                    : Result<WalltimeChange>(changed.error())) {
        apply(*change, run.request);
    }
    return run;
}

std::optional<std::string> RunDirectory::stop_request() const
{
    return request(layout::k_stop_request);
}

std::optional<std::string> RunDirectory::save_request() const
{
    return request(layout::k_save_and_stop_request);
}

std::optional<std::string> RunDirectory::rehearsal_request() const
{
    return request(layout::k_rehearsal_request);
}

std::optional<std::string> RunDirectory::exemption() const
{
    return request(k_exempt_request);
}

std::optional<std::string> RunDirectory::idle_rules() const
{
    auto text = read_file(m_directory.get(), k_idle_rules);
    return text ? std::optional(*std::move(text)) : std::nullopt;
}

std::optional<std::string> RunDirectory::credential_plan() const
{
    auto text = read_file(m_directory.get(), k_credential_plan);
    return text ? std::optional(*std::move(text)) : std::nullopt;
}

bool RunDirectory::take_release(const std::string& name, int most, Time now) const
{
    // No symbolic link was followed on the way here: runs/KEY is inside the state directory.
    const Descriptor index(::openat(m_directory.get(), "../../index", k_directory));
    if (!index || (::mkdirat(index.get(), "released", 0700) != 0 && errno != EEXIST)) {
        return false;
    }
    const Descriptor directory(::openat(index.get(), "released", k_directory));
    const Descriptor place(
        directory ? ::openat(directory.get(), name.c_str(),
                             O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)
                  : -1);
    if (!place) {
        return false;
    }
    const bool is_noted = write_all(place.get(), to_iso8601(now)) && ::fsync(place.get()) == 0;
    const auto taken = is_noted ? releases_in_hour(directory.get(), now) : std::nullopt;
    if (!taken || *taken > most) {
        ::unlinkat(directory.get(), name.c_str(), 0);
        return false;
    }
    return true;
}

std::optional<std::string> RunDirectory::request(const char* name) const
{
    // Opened anew each time: on NFS only opening asks the server.
    const Descriptor inbox(::openat(m_directory.get(), "inbox", k_directory));
    auto text =
        inbox ? read_file(inbox.get(), name) : Result<std::string>(fail(Error::Kind::missing, ""));
    return text ? std::optional(*std::move(text)) : std::nullopt;
}

bool RunDirectory::is_claimed(LinkNumber link) const
{
    const Descriptor directory(
        ::openat(m_directory.get(), fmt::format("link-{}", link.value).c_str(), k_directory));
    return directory && ::faccessat(directory.get(), k_claim, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Descriptor> RunDirectory::link(LinkNumber link) const
{
    const std::string name = fmt::format("link-{}", link.value);
    ::mkdirat(m_directory.get(), name.c_str(), 0700);
    Descriptor directory(::openat(m_directory.get(), name.c_str(), k_directory));
    if (!directory) {
        return open_error(name);
    }
    return directory;
}

Result<bool> RunDirectory::claim(LinkNumber link, JobId job) const
{
    TRY_ASSIGN(const Descriptor directory, this->link(link));
    const std::string text = fmt::format("{}\n", job.value);
    constexpr int k_new = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const Descriptor file(::openat(directory.get(), k_claim, k_new, 0600));
    if (file) {
        // The file itself is the claim: on a full disk it stays empty and only shows that the link
        // is taken.
        write_all(file.get(), text);
        return true;
    }
    if (errno != EEXIST) {
        return open_error(k_claim);
    }
    TRY_ASSIGN(const std::string owner, read_file(directory.get(), k_claim));
    return owner == text;
}

Result<Descriptor> RunDirectory::connect() const
{
    Descriptor directory(::openat(m_directory.get(), k_connect, k_directory));
    if (!directory) {
        return open_error(k_connect);
    }
    return directory;
}

void RunDirectory::forget_keys() const
{
    const auto directory = connect();
    if (!directory) {
        return;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(::dup(directory->get())),
                                                   ::closedir);
    while (const dirent* entry = list ? ::readdir(list.get()) : nullptr) {
        ::unlinkat(directory->get(), entry->d_name, 0);
    }
    ::unlinkat(m_directory.get(), k_connect, AT_REMOVEDIR);
}

void RunDirectory::make(const char* name) const
{
    ::mkdirat(m_directory.get(), name, 0700);
}

bool LinkFiles::open()
{
    open_if_closed(logs[0], directory.get(), "out.log");
    open_if_closed(logs[1], directory.get(), "err.log");
    open_if_closed(order, directory.get(), "order");
    open_if_closed(journal, directory.get(), "journal.jsonl");
    open_if_closed(heartbeat, directory.get(), "heartbeat");
    return all_open();
}

bool LinkFiles::used() const
{
    struct stat status {};
    return journal && ::fstat(journal.get(), &status) == 0 && status.st_size > 0;
}

bool LinkFiles::all_open() const
{
    return logs[0] && logs[1] && order && journal && heartbeat;
}

void JournalFile::use(int file)
{
    m_file = file;
    struct stat status {};
    m_size = ::fstat(file, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool JournalFile::append(const Event& event)
{
    if (m_file < 0) {
        return false;
    }
    char last = '\n';
    const bool torn = m_size > 0 &&
                      ::pread(m_file, &last, 1, static_cast<off_t>(m_size - 1)) == 1 &&
                      last != '\n';
    const std::string line = (torn ? "\n" : "") + to_line(event);
    const ssize_t written = ::pwrite(m_file, line.data(), line.size(), static_cast<off_t>(m_size));
    if (written != static_cast<ssize_t>(line.size())) {
        if (written > 0 && ::ftruncate(m_file, static_cast<off_t>(m_size)) != 0) {
            m_size += static_cast<std::uint64_t>(written);
        }
        return false;
    }
    m_size += line.size();
    return true;
}

} // namespace gpuq::supervisor
