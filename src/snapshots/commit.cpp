// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/commit.h"

#include "core/number.h"
#include "core/strings.h"
#include "snapshots/git.h"
#include "snapshots/selection.h"
#include "snapshots/take.h"

#include <fmt/format.h>
#include <nettle/sha1.h>

#include <algorithm>
#include <array>
#include <map>

namespace gpuq::snapshots {
namespace {

/// The files of a commit, and of the commits of submodules that it names.
class CommittedFiles {
public:
    explicit CommittedFiles(const Manifest& manifest)
        : m_root(manifest.root)
    {
    }

    /// False if the repository does not have the commit.
    bool add(const std::string& commit, const std::string& prefix = "", int level = 0)
    {
        const auto listed =
            git(m_root + "/" + prefix, {"ls-tree", "-r", "-l", "-z", "--full-tree", commit});
        if (!listed) {
            return false;
        }
        // MODE TYPE OBJECT SIZE<tab>PATH
        for (const std::string_view line : fields(*listed, std::string_view("\0", 1))) {
            const auto [facts, path] = cut(line, '\t');
            const auto columns = fields(facts, " ");
            if (columns.size() != 4 || !is_object_id(columns[2])) {
                continue;
            }
            const std::string name = prefix + std::string(path);
            if (columns[1] == "commit") {
                constexpr int k_most_levels = 32;
                if (level == k_most_levels ||
                    !add(std::string(columns[2]), name + "/", level + 1)) {
                    m_unknown.push_back(name + "/");
                }
                continue;
            }
            const bool executable = columns[0] == "100755";
            if (const auto size = whole_number(columns[3]);
                size && (executable || columns[0] == "100644")) {
                const bool code = is_code(name, *size, executable, Origin::tracked, true);
                m_files.emplace(name,
                                CommittedFile{prefix, std::string(columns[2]), executable, code});
            }
        }
        return true;
    }

    const std::map<std::string, CommittedFile>& files() const { return m_files; }

    bool is_unknown(const std::string& path) const
    {
        return std::any_of(m_unknown.begin(), m_unknown.end(),
                           [&path](const std::string& prefix) { return path.starts_with(prefix); });
    }

private:
    std::string m_root;
    std::map<std::string, CommittedFile> m_files;
    std::vector<std::string> m_unknown; ///< submodules
};

std::string sha1(std::string_view bytes)
{
    sha1_ctx context;
    sha1_init(&context);
    sha1_update(&context, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
    std::array<std::uint8_t, SHA1_DIGEST_SIZE> digest{};
    sha1_digest(&context, digest.size(), digest.data());
    std::string text;
    for (const std::uint8_t byte : digest) {
        text += fmt::format("{:02x}", byte);
    }
    return text;
}

/// The identity that git gives to a content, in the same format as `like`.
std::string object_of(const std::string& content, const std::string& like)
{
    const std::string object = fmt::format("blob {}", content.size()) + '\0' + content;
    constexpr std::size_t k_sha1 = 40;
    return like.size() == k_sha1 ? sha1(object) : sha256(object);
}

} // namespace

Result<std::vector<CommitChange>> changes_from_commit(Store& store, const Manifest& manifest)
{
    if (manifest.commit.empty()) {
        return fail(Error::Kind::missing, fmt::format("{} had no git commit", manifest.root));
    }
    CommittedFiles committed(manifest);
    if (!is_object_id(manifest.commit) || !committed.add(manifest.commit)) {
        return fail(Error::Kind::missing,
                    fmt::format("{} no longer has commit {}", manifest.root, manifest.commit));
    }
    std::vector<CommitChange> changes;
    for (const auto& [path, file] : committed.files()) {
        const Entry* entry = find(manifest, path);
        if (entry == nullptr) {
            if (file.is_code) {
                changes.push_back({path, file, nullptr});
            }
            continue;
        }
        TRY_ASSIGN(const std::string content, content_of(store, *entry));
        if (entry->executable != file.executable ||
            object_of(content, file.object) != file.object) {
            changes.push_back({path, file, entry});
        }
    }
    for (const Entry& entry : manifest.entries) {
        if (!committed.files().contains(entry.path) && !committed.is_unknown(entry.path)) {
            changes.push_back({entry.path, std::nullopt, &entry});
        }
    }
    std::sort(changes.begin(), changes.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return changes;
}

std::optional<std::string> committed_content(const Manifest& manifest, const CommittedFile& file)
{
    return git(manifest.root + "/" + file.repository, {"cat-file", "blob", file.object});
}

} // namespace gpuq::snapshots
