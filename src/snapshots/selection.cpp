// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/selection.h"

#include "core/strings.h"
#include "io/descriptor.h"
#include "snapshots/git.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::snapshots {
namespace {

using Strings = std::vector<std::string>;

constexpr std::size_t k_most_files = 20'000;
constexpr std::size_t k_few_files = 2'000;
constexpr int k_most_levels = 32;
constexpr std::uint64_t k_largest_source = 1 << 20;
constexpr std::uint64_t k_largest_program = 64 << 20;

constexpr std::array<std::string_view, 52> k_sources = {
    "py",   "pyi", "pyx", "pxd",   "ipynb", "sh",    "bash", "zsh",  "fish",  "c",  "h",
    "cc",   "hh",  "cpp", "hpp",   "cxx",   "hxx",   "inl",  "cu",   "cuh",   "jl", "r",
    "m",    "lua", "pl",  "pm",    "rb",    "rs",    "go",   "java", "kt",    "js", "ts",
    "mjs",  "f",   "f90", "f95",   "f03",   "cmake", "mk",   "sql",  "jinja", "j2", "proto",
    "glsl", "cl",  "hip", "scala", "hs",    "ml",    "tcl",  "awk"};
constexpr std::array<std::string_view, 10> k_settings = {"yaml", "yml",  "toml",    "ini", "cfg",
                                                         "conf", "json", "jsonnet", "gin", "env"};
/// Data and output.
constexpr std::array<std::string_view, 54> k_data = {
    "txt",     "log",         "out",     "err",      "csv",       "tsv",   "dat", "data",
    "pt",      "pth",         "ckpt",    "pkl",      "pickle",    "npy",   "npz", "h5",
    "hdf5",    "nc",          "parquet", "feather",  "arrow",     "orc",   "bin", "onnx",
    "gguf",    "safetensors", "msgpack", "tfrecord", "tfrecords", "jsonl", "db",  "sqlite",
    "sqlite3", "mat",         "rds",     "gz",       "bz2",       "xz",    "zst", "zip",
    "tar",     "tgz",         "png",     "jpg",      "jpeg",      "gif",   "svg", "pdf",
    "tif",     "tiff",        "wav",     "mp3",      "mp4",       "html"};
constexpr std::array<std::string_view, 6> k_names = {"Makefile",   "GNUmakefile", "makefile",
                                                     "Dockerfile", "Snakefile",   "SConstruct"};

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& list, std::string_view word)
{
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// The ending, in lower case.
std::string ending_of(std::string_view name)
{
    const std::size_t dot = name.rfind('.');
    std::string ending(name.substr(dot == std::string_view::npos ? name.size() : dot + 1));
    std::transform(ending.begin(), ending.end(), ending.begin(),
                   [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
    return ending;
}

/// Data or output, by the ending of its name; `a.out` is a program.
bool is_data(const std::string& ending, bool executable)
{
    return is_in(k_data, ending) && !(executable && ending == "out");
}

bool is_library(std::string_view name)
{
    return name.ends_with(".so") || name.find(".so.") != std::string_view::npos;
}

/// The nearest directory, from this one up, with a `.git`; empty: none. Spares a start of git.
std::string work_tree_of(const std::string& directory)
{
    for (std::filesystem::path path(directory);; path = path.parent_path()) {
        struct stat status {};
        if (::lstat((path / ".git").c_str(), &status) == 0) {
            return path.string();
        }
        if (!path.has_relative_path()) {
            return {};
        }
    }
}

Error too_many(const std::string& directory)
{
    return fail(Error::Kind::busy,
                fmt::format("{} has more than {} files that may be code", directory, k_most_files));
}

Error not_listed(const std::string& directory)
{
    return fail(Error::Kind::missing, directory + " is not a directory of code alone");
}

bool is_home(const std::string& directory)
{
    const char* const home = std::getenv("HOME");
    struct stat one {};
    struct stat other {};
    return home != nullptr && ::stat(home, &one) == 0 && ::stat(directory.c_str(), &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// The files of a work tree, and of its submodules.
class GitFiles {
public:
    GitFiles(Candidates& found, std::optional<std::chrono::milliseconds> limit)
        : m_found(found)
        , m_limit(limit)
    {
    }

    /// False if git does not list them.
    bool add(const std::string& prefix = "", int level = 0)
    {
        const std::string directory = m_found.root + "/" + prefix;
        // -t: `H MODE OBJECT STAGE<tab>PATH` for a tracked file, `? PATH` for another one.
        const auto listed =
            git(directory,
                {"ls-files", "-t", "-z", "--cached", "--stage", "--others", "--exclude-standard"},
                m_limit);
        if (!listed) {
            return false;
        }
        Strings submodules;
        for (const std::string_view line : fields(*listed, std::string_view("\0", 1))) {
            const auto [tag, entry] = cut(line, ' ');
            if (tag == "?") {
                m_found.files.push_back({prefix + std::string(entry), Origin::untracked});
                continue;
            }
            const auto [facts, path] = cut(entry, '\t');
            constexpr std::string_view k_submodule = "160000 ";
            if (facts.starts_with(k_submodule)) {
                submodules.emplace_back(path);
            } else {
                m_found.files.push_back({prefix + std::string(path), Origin::tracked});
            }
        }
        for (const std::string& path : submodules) {
            struct stat entry {};
            const std::string git_file = directory + path + "/.git"; // else it is not checked out
            if (level < k_most_levels && ::lstat(git_file.c_str(), &entry) == 0) {
                (void)add(prefix + path + "/", level + 1);
            }
        }
        return true;
    }

private:
    Candidates& m_found;
    std::optional<std::chrono::milliseconds> m_limit;
};

struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

/// Every file below a directory, without following symbolic links.
class Walk {
public:
    Walk(Candidates& found, bool thorough)
        : m_found(found)
        , m_thorough(thorough)
    {
    }

    Result<void> add(int parent, const std::string& name, const std::string& prefix, int level = 0)
    {
        Descriptor opened(
            ::openat(parent, name.c_str(),
                     O_RDONLY | O_DIRECTORY | O_CLOEXEC | (level > 0 ? O_NOFOLLOW : 0)));
        if (!opened || is_no_code(opened.get())) {
            return {};
        }
        const int fd = opened.get();
        const std::unique_ptr<DIR, CloseDirectory> directory(::fdopendir(opened.release()));
        while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
            const std::string_view child = static_cast<const char*>(entry->d_name);
            if (child.starts_with('.') || child == "__pycache__" || child == "node_modules") {
                continue;
            }
            if (++m_entries > (m_thorough ? k_most_files : k_few_files)) {
                return m_thorough ? too_many(m_found.root) : not_listed(m_found.root);
            }
            if (entry->d_type == DT_DIR && level < k_most_levels) {
                TRY(add(fd, std::string(child), prefix + std::string(child) + "/", level + 1));
            } else if (entry->d_type == DT_REG) {
                m_found.files.push_back({prefix + std::string(child), Origin::untracked});
            } else if (entry->d_type == DT_UNKNOWN) {
                TRY(add_unknown(fd, std::string(child), prefix, level));
            }
        }
        return {};
    }

private:
    /// On file systems that do not report types with names.
    Result<void> add_unknown(int parent, const std::string& name, const std::string& prefix,
                             int level)
    {
        struct stat status {};
        if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            return {};
        }
        if (S_ISREG(status.st_mode)) {
            m_found.files.push_back({prefix + name, Origin::untracked});
        } else if (S_ISDIR(status.st_mode) && level < k_most_levels) {
            return add(parent, name, prefix + name + "/", level + 1);
        }
        return {};
    }

    /// A virtual environment, a conda environment, or a cache.
    static bool is_no_code(int directory)
    {
        return std::any_of(k_marks.begin(), k_marks.end(), [directory](const char* mark) {
            return ::faccessat(directory, mark, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        });
    }

    static constexpr std::array<const char*, 3> k_marks = {"pyvenv.cfg", "conda-meta",
                                                           "CACHEDIR.TAG"};
    Candidates& m_found;
    bool m_thorough;
    std::size_t m_entries = 0;
};

/// The words that are files below the root, by any path.
void add_named(const std::string& directory, const Strings& command, Candidates& found)
{
    for (const std::string& word : command) {
        const std::string path =
            std::filesystem::path(word.starts_with('/') ? word : directory + "/" + word)
                .lexically_normal();
        if (!word.empty() && path.starts_with(found.root + "/") && !path.ends_with('/')) {
            found.files.push_back({path.substr(found.root.size() + 1), Origin::named});
        }
    }
}

} // namespace

bool is_code(std::string_view path, std::uint64_t size, bool executable, Origin origin,
             bool with_git)
{
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const std::string ending = ending_of(name);
    const bool is_source = is_in(k_sources, ending) || is_in(k_names, name);
    // On some file systems every file is executable, data too.
    const bool is_named = origin == Origin::named && !is_data(ending, executable);
    const bool is_program = executable && (ending.empty() || is_source || is_named);
    if (is_program || is_library(name)) {
        return size <= k_largest_program;
    }
    if (size > k_largest_source) {
        return false;
    }
    if (is_source || is_named) {
        return true;
    }
    const bool is_written_often = ending == "json" || with_git;
    return is_in(k_settings, ending) && (origin == Origin::tracked || !is_written_often);
}

Kind kind_of(std::string_view path, bool executable)
{
    if (is_code(path, 0, executable, Origin::untracked, true)) {
        return Kind::source;
    }
    if (is_code(path, 0, executable, Origin::tracked, true)) {
        return Kind::configuration;
    }
    const bool is_program = executable && is_code(path, 0, executable, Origin::named, true);
    return is_program ? Kind::source : Kind::other;
}

Result<Candidates> list_files(const std::string& directory, const Strings& command, bool thorough,
                              std::chrono::milliseconds patience)
{
    using std::chrono::steady_clock;
    Candidates found;
    found.root = work_tree_of(directory);
    if (!thorough && is_home(found.root)) { // for configuration; all else in it is untracked
        found.root.clear();
    }
    const auto begin = steady_clock::now();
    const auto limit = thorough ? std::nullopt : std::optional(patience);
    found.with_git = !found.root.empty() && GitFiles(found, limit).add();
    if (limit && !found.with_git && steady_clock::now() - begin >= *limit) {
        return fail(Error::Kind::busy,
                    fmt::format("git takes longer than {} s to list the files of {}; --snapshot "
                                "waits for it, .gitignore leaves out directories of output",
                                std::chrono::ceil<std::chrono::seconds>(*limit).count(),
                                found.root));
    }
    if (found.with_git) {
        found.commit = current_commit(found.root);
    } else {
        if (!thorough && is_home(directory)) {
            return not_listed(directory);
        }
        found = {.root = directory};
        TRY(Walk(found, thorough).add(AT_FDCWD, directory, ""));
    }
    if (found.files.size() > k_most_files) {
        return too_many(found.root);
    }
    add_named(directory, command, found);
    // A file that is also named counts as named.
    std::sort(found.files.begin(), found.files.end(), [](const auto& a, const auto& b) {
        return std::pair(std::string_view(a.path), -static_cast<int>(a.origin)) <
               std::pair(std::string_view(b.path), -static_cast<int>(b.origin));
    });
    const auto same = [](const auto& a, const auto& b) { return a.path == b.path; };
    found.files.erase(std::unique(found.files.begin(), found.files.end(), same), found.files.end());
    return found;
}

} // namespace gpuq::snapshots
