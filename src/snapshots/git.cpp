// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/git.h"

#include "core/strings.h"
#include "io/subprocess.h"
#include "snapshots/files_below.h"

#include <algorithm>
#include <string_view>
#include <unistd.h>

namespace gpuq::snapshots {
namespace {

/// A small file of the repository; empty without one.
std::string small_file(FilesBelow& files, const std::string& name)
{
    constexpr off_t k_largest = 1 << 20;
    const std::string path = ".git/" + name;
    const auto status = files.status(path);
    const auto read = status && status->st_size <= k_largest ? files.read(path) : std::nullopt;
    return read ? read->content : std::string();
}

/// The commit in the usual layout: HEAD, which names a branch, and the file of that branch, or the
/// list of branches that are packed. Anything else is left to git.
std::string commit_in_files(const std::string& root)
{
    FilesBelow files(root);
    std::string head(trimmed(small_file(files, "HEAD")));
    constexpr std::string_view k_branch = "ref: ";
    if (!head.starts_with(k_branch)) {
        return head;
    }
    const std::string branch = head.substr(k_branch.size());
    if (!branch.starts_with("refs/heads/") || branch.find("..") != std::string::npos) {
        return {};
    }
    const std::string loose = small_file(files, branch);
    if (!loose.empty()) {
        return std::string(trimmed(loose));
    }
    const std::string packed = small_file(files, "packed-refs");
    for (const std::string_view line : fields(packed, "\n")) {
        const auto [commit, name] = cut(line, ' ');
        if (name == branch) {
            return std::string(commit);
        }
    }
    return {};
}

} // namespace

std::optional<std::string> git(const std::string& directory,
                               const std::vector<std::string>& arguments,
                               std::optional<std::chrono::milliseconds> limit)
{
    Subprocess plan{
        .argv = {"git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", directory}};
    plan.argv.insert(plan.argv.end(), arguments.begin(), arguments.end());
    plan.environment.emplace();
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (!std::string_view(*variable).starts_with("GIT_")) { // another repository
            plan.environment->emplace_back(*variable);
        }
    }
    // A partial clone lacks objects, and its configuration names the program that fetches them.
    plan.environment->emplace_back("GIT_NO_LAZY_FETCH=1");
    plan.environment->emplace_back("GIT_ALLOW_PROTOCOL=");
    auto finished = run(std::move(plan), {.streams = Capture::Streams::apart, .limit = limit});
    if (!finished || finished->error != 0 || finished->status != 0 || !finished->in_time) {
        return std::nullopt;
    }
    return std::move(finished->out);
}

std::string current_commit(const std::string& root)
{
    std::string commit = commit_in_files(root);
    if (!is_object_id(commit)) {
        commit = trimmed(git(root, {"rev-parse", "--verify", "--quiet", "HEAD"}).value_or(""));
    }
    return is_object_id(commit) ? commit : std::string();
}

bool is_object_id(std::string_view text)
{
    constexpr std::size_t k_sha1 = 40;
    constexpr std::size_t k_sha256 = 64;
    return (text.size() == k_sha1 || text.size() == k_sha256) &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

} // namespace gpuq::snapshots
