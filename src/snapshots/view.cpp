// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/view.h"

#include "core/exit_status.h"
#include "core/split_arguments.h"
#include "io/descriptor.h"
#include "io/subprocess.h"
#include "snapshots/files_below.h"
#include "snapshots/selection.h"
#include "snapshots/take.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace gpuq::snapshots {
namespace {

Error failed(std::string_view action)
{
    return fail(Error::Kind::io,
                fmt::format("{}: {}", action, std::generic_category().message(errno)));
}

bool write_to(const char* path, const std::string& text)
{
    const Descriptor file(::open(path, O_WRONLY | O_CLOEXEC));
    return file && write_all(file.get(), text);
}

/// A mount namespace, within a user namespace where necessary: its user has the same number there.
Result<void> enter_namespace()
{
    const auto uid = ::geteuid();
    const auto gid = ::getegid();
    if (::unshare(CLONE_NEWNS) != 0) {
        if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
            return failed("no user namespace");
        }
        if (!write_to("/proc/self/setgroups", "deny") ||
            !write_to("/proc/self/uid_map", fmt::format("{} {} 1", uid, uid)) ||
            !write_to("/proc/self/gid_map", fmt::format("{} {} 1", gid, gid))) {
            return failed("no mapping of users");
        }
    }
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
        return failed("no mount namespace");
    }
    return {};
}

std::string path_of(const Descriptor& descriptor)
{
    return fmt::format("/proc/self/fd/{}", descriptor.get());
}

Result<void> mount_over(const std::string& source, const std::string& target)
{
    if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
        return failed("no mount over a file");
    }
    return {};
}

/// The modification time of a copy. Python takes a compiled file for current if the source has the
/// time recorded in it, so different contents need different times.
timespec time_of_copy(const Entry& entry)
{
    constexpr int k_digits = 7;
    constexpr int k_hexadecimal = 16;
    return {std::stol(entry.hash.substr(0, k_digits), nullptr, k_hexadecimal), 0};
}

/// Whether a file has the time of a copy. Nothing else sets it.
bool is_copy(const struct stat& status, const Entry& entry)
{
    const timespec time = time_of_copy(entry);
    return S_ISREG(status.st_mode) && status.st_mtim.tv_sec == time.tv_sec &&
           status.st_mtim.tv_nsec == time.tv_nsec;
}

enum class Now { same, changed, missing };

Now compare(FilesBelow& files, const Entry& entry)
{
    const auto status = files.status(entry.path);
    if (!status) {
        return errno == ENOENT ? Now::missing : Now::changed;
    }
    if (!S_ISREG(status->st_mode) || ((status->st_mode & S_IXUSR) != 0) != entry.executable) {
        return Now::changed;
    }
    if (stamp_of(*status) == entry.stamp) {
        return Now::same;
    }
    if (is_copy(*status, entry)) {
        return Now::missing; // it is removed when the program ends for which it was put back
    }
    const auto read = status->st_size == static_cast<off_t>(entry.stamp.size)
                          ? files.read(entry.path)
                          : std::nullopt;
    return read && sha256(read->content) == entry.hash ? Now::same : Now::changed;
}

void set_time(int file, const Entry& entry)
{
    const std::array<timespec, 2> times{time_of_copy(entry), time_of_copy(entry)};
    ::futimens(file, times.data());
}

/// Copies of the files of a snapshot, in memory and read-only, until this object ends or they are
/// mounted elsewhere.
class Copies {
public:
    static Result<Copies> make_empty()
    {
        const char* parent = std::getenv("TMPDIR");
        std::string directory = fmt::format(
            "{}/gpuq-view-XXXXXX", parent != nullptr && parent[0] == '/' ? parent : "/tmp");
        if (::mkdtemp(directory.data()) == nullptr) {
            return failed(directory);
        }
        Copies copies(directory);
        if (::mount("gpuq", directory.c_str(), "tmpfs", k_flags, "mode=0700") != 0) {
            return failed("no file system in memory");
        }
        return copies;
    }

    static Result<Copies> make(Store& store, const std::vector<const Entry*>& entries)
    {
        TRY_ASSIGN(Copies copies, make_empty());
        for (std::size_t i = 0; i != entries.size(); ++i) {
            TRY(copies.add(store, *entries[i], i));
        }
        if (::mount(nullptr, copies.m_directory.c_str(), nullptr, MS_REMOUNT | MS_RDONLY | k_flags,
                    nullptr) != 0) {
            return failed("no read-only file system in memory");
        }
        return copies;
    }

    Copies(Copies&& other) noexcept
        : m_directory(std::exchange(other.m_directory, {}))
    {
    }
    Copies& operator=(Copies&&) = delete;
    ~Copies()
    {
        if (!m_directory.empty()) {
            ::umount2(m_directory.c_str(), MNT_DETACH);
            ::rmdir(m_directory.c_str());
        }
    }

    /// The path of the copy of an entry, by its index.
    std::string path(std::size_t index) const { return fmt::format("{}/{}", m_directory, index); }

private:
    explicit Copies(std::string directory)
        : m_directory(std::move(directory))
    {
    }

    Result<void> add(Store& store, const Entry& entry, std::size_t index)
    {
        TRY_ASSIGN(const std::string content, content_of(store, entry));
        const Descriptor file(::open(path(index).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                     entry.executable ? 0555 : 0444));
        if (!file || !write_all(file.get(), content)) {
            return failed("no copy of a file in memory");
        }
        set_time(file.get(), entry);
        return {};
    }

    static constexpr unsigned long k_flags = MS_NOSUID | MS_NODEV;
    std::string m_directory;
};

/// Whether the system allows such a namespace. Tried in another process: there is no way back.
Result<void> try_namespace()
{
    TRY_ASSIGN(Pipe answer, make_pipe());
    const pid_t child = ::fork();
    if (child == 0) {
        { // its destructor removes the directory
            const auto entered = enter_namespace();
            const auto copies = entered ? Copies::make_empty() : Result<Copies>(entered.error());
            if (!copies) {
                (void)write_all(answer.write.get(), copies.error().text);
            }
        }
        ::_exit(0);
    }
    if (child < 0) {
        return failed("no process");
    }
    answer.write.reset();
    std::string problem(1024, '\0');
    const ssize_t size = ::read(answer.read.get(), problem.data(), problem.size());
    (void)wait_for(child);
    problem.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return problem.empty() ? Result<void>() : fail(Error::Kind::denied, problem);
}

/// The directory of a file, created if necessary.
Descriptor make_parent(int root, const std::string& path)
{
    Descriptor at(::openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    std::size_t begin = 0;
    for (std::size_t end = path.find('/'); at && end != std::string::npos;
         end = path.find('/', begin)) {
        const std::string part = path.substr(begin, end - begin);
        (void)::mkdirat(at.get(), part.c_str(), 0777);
        at = Descriptor(
            ::openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        begin = end + 1;
    }
    return at;
}

/// Locks a file that was put back for another program. False: it was removed a moment ago.
bool share(int parent, const std::string& name)
{
    Descriptor file(::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW));
    struct stat status {};
    if (!file || ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 || ::fstat(file.get(), &status) != 0 ||
        status.st_nlink == 0) {
        return false;
    }
    (void)file.release();
    return true;
}

/// Puts a missing file back. A shared lock, which the program inherits, keeps it from being removed
/// by others before the program ends.
Result<void> put_file_back(Store& store, int root, const Entry& entry)
{
    TRY_ASSIGN(const std::string content, content_of(store, entry));
    const Descriptor parent = make_parent(root, entry.path);
    const std::string name = name_of(entry.path);
    if (share(parent.get(), name)) {
        return {};
    }
    const std::string temporary = fmt::format(".gpuq-{}-{}", ::getpid(), entry.hash);
    const mode_t mode = entry.executable ? 0755 : 0644;
    Descriptor file(
        ::openat(parent.get(), temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    const bool complete = file && write_all(file.get(), content);
    if (complete) {
        set_time(file.get(), entry);
        ::flock(file.get(), LOCK_SH | LOCK_NB);
    }
    if (complete && ::renameat2(parent.get(), temporary.c_str(), parent.get(), name.c_str(),
                                RENAME_NOREPLACE) == 0) {
        (void)file.release();
        return {};
    }
    const Error error = failed(entry.path + " can't be put back");
    (void)::unlinkat(parent.get(), temporary.c_str(), 0);
    // Another program may have put it back a moment ago.
    return share(parent.get(), name) ? Result<void>() : error;
}

/// A file that was put back, open for writing; none if it is another file, or needed by a program.
Descriptor unneeded_copy(FilesBelow& files, const Entry& entry)
{
    const auto status = files.status(entry.path);
    if (!status || !is_copy(*status, entry)) {
        return {};
    }
    const auto read = files.read(entry.path);
    Descriptor file = files.open(entry.path, O_RDWR);
    const bool is_free = read && sha256(read->content) == entry.hash && file &&
                         ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
    return is_free ? std::move(file) : Descriptor();
}

std::string list_of(const Changes& changes)
{
    constexpr std::size_t k_most = 3;
    std::vector<std::string> names;
    for (const auto* list : {&changes.changed, &changes.missing}) {
        for (const std::string& path : *list) {
            if (names.size() != k_most) {
                names.push_back(path);
            }
        }
    }
    const std::size_t count = changes.changed.size() + changes.missing.size();
    return fmt::format("{}{}", fmt::join(names, ", "),
                       count > k_most ? fmt::format(" and {} more", count - k_most) : "");
}

void print(const std::string& text)
{
    (void)write_all(STDERR_FILENO, "gpuq: " + sanitised(text) + "\n");
}

/// Ranks print the same: one of them is enough.
bool is_first_rank()
{
    const char* rank = std::getenv("SLURM_PROCID");
    return rank == nullptr || std::string_view(rank) == "0";
}

int execute_now(const std::vector<std::string>& argv)
{
    ::execvp(argv.front().c_str(), pointers(argv).data());
    const int error = errno;
    print(fmt::format("{}: {}", argv.front(), std::generic_category().message(error)));
    return static_cast<int>(error == ENOENT ? ExitStatus::not_found : ExitStatus::not_executable);
}

bool contains(const std::vector<std::string>& paths, const std::string& path)
{
    return std::find(paths.begin(), paths.end(), path) != paths.end();
}

/// Sources, of which a program may read more at any time, and others that have been changed.
std::vector<const Entry*> to_be_mounted(const Manifest& manifest, const Changes& changes)
{
    std::vector<const Entry*> entries;
    for (const Entry& entry : manifest.entries) {
        if (kind_of(entry.path, entry.executable) == Kind::source ||
            contains(changes.changed, entry.path) || contains(changes.missing, entry.path)) {
            entries.push_back(&entry);
        }
    }
    return entries;
}

/// Enters the view if that is necessary. False: the program must not be started.
bool prepare(Store& store, const Reference& reference, Started started)
{
    auto manifest = read(store, reference.id);
    if (!manifest) {
        print(fmt::format("the run's snapshot can't be read: {}", manifest.error().text));
        return !reference.required;
    }
    if (started == Started::again) { // its output is not undone
        std::erase_if(manifest->entries, [](const Entry& entry) {
            return kind_of(entry.path, entry.executable) == Kind::other;
        });
    }
    const Changes changes = changes_since(*manifest);
    const Missing missing = reference.required         ? Missing::required
                            : manifest->commit.empty() ? Missing::left
                                                       : Missing::put_back;
    if (changes.changed.empty() && (changes.missing.empty() || missing == Missing::left)) {
        return true;
    }
    const auto entered = enter_view(store, *manifest, missing);
    if (entered && !is_first_rank()) {
        return true;
    }
    if (entered) {
        print(fmt::format("the program gets the files as they were when it was submitted; changed "
                          "since: {}",
                          list_of(changes)));
        return true;
    }
    const bool can_run = !reference.required && entered.error().kind == Error::Kind::denied;
    print(fmt::format("{}, because this node can't provide the snapshot: {}; changed since: {}",
                      can_run ? "the program gets the current files" : "the program is not started",
                      entered.error().text, list_of(changes)));
    return can_run;
}

} // namespace

Changes changes_since(const Manifest& manifest)
{
    Changes changes;
    FilesBelow files(manifest.root);
    for (const Entry& entry : manifest.entries) {
        const Now now = compare(files, entry);
        if (now != Now::same) {
            (now == Now::missing ? changes.missing : changes.changed).push_back(entry.path);
        }
    }
    return changes;
}

Result<void> enter_view(Store& store, const Manifest& manifest, Missing missing)
{
    TRY(try_namespace());
    const FilesBelow files(manifest.root);
    const Changes changes = changes_since(manifest);
    for (const std::string& path : changes.missing) {
        const auto done = missing == Missing::left
                              ? Result<void>()
                              : put_file_back(store, files.root(), *find(manifest, path));
        if (!done && missing == Missing::required) {
            return done;
        }
    }
    TRY(enter_namespace());
    const auto entries = to_be_mounted(manifest, changes);
    TRY_ASSIGN(const Copies copies, Copies::make(store, entries));
    FilesBelow seen(manifest.root);
    for (std::size_t i = 0; i != entries.size(); ++i) {
        const std::string& path = entries[i]->path;
        const Descriptor file = seen.open(path, O_PATH);
        struct stat status {};
        if (file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) {
            TRY(mount_over(copies.path(i), path_of(file)));
        } else if (missing == Missing::required) {
            return fail(Error::Kind::io, path + " is no longer a regular file");
        }
    }
    return {};
}

std::size_t remove_put_back(const Manifest& manifest)
{
    FilesBelow files(manifest.root);
    std::size_t count = 0;
    for (const Entry& entry : manifest.entries) {
        if (const Descriptor file = unneeded_copy(files, entry)) {
            const std::string name = name_of(entry.path);
            count += ::unlinkat(files.parent_of(entry.path), name.c_str(), 0) == 0 ? 1 : 0;
            // Its directories, if they were put back as well and are empty.
            std::string path = entry.path;
            for (std::size_t slash = path.rfind('/'); slash != std::string::npos;
                 slash = path.rfind('/')) {
                path.resize(slash);
                if (::unlinkat(files.parent_of(path), name_of(path).c_str(), AT_REMOVEDIR) != 0) {
                    break;
                }
            }
        }
    }
    return count;
}

int execute(Store& store, const Reference& reference, const std::vector<std::string>& argv,
            Started started)
{
    return prepare(store, reference, started) ? execute_now(argv)
                                              : static_cast<int>(ExitStatus::internal);
}

} // namespace gpuq::snapshots
