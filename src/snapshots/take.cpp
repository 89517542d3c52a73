// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/take.h"

#include "core/timestamp.h"
#include "runs/records/json_fields.h"
#include "snapshots/files_below.h"
#include "snapshots/selection.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <map>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

// Order of writes: the pack with the new contents, then the tree that refers to it, and last the
// `latest` of the root, with which the next snapshot is compared. Each is on disk before the next
// one is written, so every file that can be read refers to contents that exist; a failed attempt
// leaves at most a pack or a tree without a user.
//
// Removal takes two calls, an hour apart, with unused.json between them: a run that is being
// submitted uses a tree, or a pack of earlier snapshots, before its record can be seen. A pack is
// unused once no tree and no `latest` on disk refers to it.

namespace gpuq::snapshots {
namespace {

constexpr std::uint64_t k_most_bytes = 128 << 20;
constexpr std::size_t k_largest_manifest = 64 << 20;
constexpr std::int64_t k_second = 1'000'000'000;
/// A file that was changed more recently may still be in the middle of being written: the clock of
/// a file system advances in steps of up to 10 ms.
constexpr std::int64_t k_settled = k_second / 50;
constexpr int k_most_pauses = 20; ///< of this length, for files that are being written
constexpr const char* k_unused = "snapshots/unused.json";
constexpr const char* k_latest = "snapshots/latest";

Result<std::string> read_whole(Store& store, const std::string& path)
{
    TRY_ASSIGN(const std::uint64_t size, store.size(path));
    if (size > k_largest_manifest) {
        return fail(Error::Kind::usage, fmt::format("{}/{} is too large", store.root(), path));
    }
    return store.read_at(path, 0, size);
}

Result<Manifest> read_manifest(Store& store, const std::string& path)
{
    TRY_ASSIGN(const std::string text, read_whole(store, path));
    auto manifest = manifest_from_text(text);
    if (!manifest) {
        return fail(manifest.error().kind,
                    fmt::format("{}/{}: {}", store.root(), path, manifest.error().text));
    }
    return manifest;
}

/// One use of `take`.
class Taking {
public:
    Taking(Store& store, Candidates found)
        : m_store(store)
        , m_found(std::move(found))
        , m_files(m_found.root)
        , m_begin(now())
    {
        auto latest = read_manifest(store, latest_path(m_found.root));
        if (latest && latest->root == m_found.root) {
            m_latest = *std::move(latest);
        }
        for (const Entry& entry : m_latest.entries) {
            m_stored.emplace(entry.hash, std::pair(entry.pack, entry.offset));
        }
        m_taken.manifest.root = m_found.root;
        m_taken.manifest.commit = m_found.commit;
    }

    Result<Taken> run()
    {
        for (const Candidates::File& file : m_found.files) {
            TRY(add(file));
        }
        finish_pack();
        m_taken.id = id_of(m_taken.manifest);
        TRY(write());
        return std::move(m_taken);
    }

private:
    static std::int64_t now()
    {
        timespec time{};
        ::clock_gettime(CLOCK_REALTIME, &time);
        return std::int64_t{time.tv_sec} * k_second + time.tv_nsec;
    }

    Result<void> add(const Candidates::File& file)
    {
        const auto status = m_files.status(file.path);
        if (!status) {
            return unread(file.path);
        }
        if (!S_ISREG(status->st_mode)) {
            return {};
        }
        const auto size = static_cast<std::uint64_t>(status->st_size);
        const bool executable = (status->st_mode & S_IXUSR) != 0;
        if (!is_code(file.path, size, executable, file.origin, m_found.with_git)) {
            ++m_taken.manifest.left_out;
            return {};
        }
        m_bytes += size;
        if (m_bytes > k_most_bytes) {
            return fail(Error::Kind::busy,
                        fmt::format("the code below {} is larger than {} MiB; {} is part of it",
                                    m_found.root, k_most_bytes >> 20, file.path));
        }
        const Entry* known = find(m_latest, file.path);
        if (known != nullptr && known->stamp == stamp_of(*status)) {
            Entry entry = *known;
            entry.executable = executable;
            m_taken.manifest.entries.push_back(std::move(entry));
            return {};
        }
        const auto read = read_settled(file.path);
        if (!read) {
            return unread(file.path);
        }
        store(file.path, read->content, read->status);
        return {};
    }

    /// The content between two changes of a file that is being written in place, unless that takes
    /// long.
    std::optional<RegularFile> read_settled(const std::string& path)
    {
        while (true) {
            auto read = m_files.read(path);
            const auto after = read ? m_files.status(path) : std::nullopt;
            if (!after || m_pauses_left == 0) {
                return read;
            }
            const Stamp stamp = stamp_of(read->status);
            const std::int64_t age = now() - std::max(stamp.modified, stamp.changed);
            const bool is_recent = age >= 0 && age < k_settled;
            if (stamp_of(*after) == stamp && !is_recent) {
                return read;
            }
            --m_pauses_left;
            const timespec pause{0, k_settled};
            ::nanosleep(&pause, nullptr);
        }
    }

    /// A file may vanish, or be unreadable for the program too; but not be absent because its file
    /// server did not respond.
    Result<void> unread(const std::string& path)
    {
        constexpr std::array k_of_the_system = {EIO,    ESTALE, ETIMEDOUT, EREMOTEIO,
                                                EMFILE, ENFILE, ENOMEM};
        const int error = errno;
        m_taken.manifest.left_out += error == EACCES ? 1 : 0;
        return std::find(k_of_the_system.begin(), k_of_the_system.end(), error) ==
                       k_of_the_system.end()
                   ? Result<void>()
                   : fail(Error::Kind::io, fmt::format("{}/{}: {}", m_found.root, path,
                                                       std::generic_category().message(error)));
    }

    void store(const std::string& path, const std::string& content, const struct stat& status)
    {
        Entry entry{
            path, (status.st_mode & S_IXUSR) != 0, sha256(content), {}, 0, stamp_of(status)};
        // A change within the same tick of the file system's clock would not be noticed.
        constexpr std::int64_t k_tick = 2 * k_second;
        if (entry.stamp.size != content.size() || entry.stamp.changed > m_begin - k_tick) {
            entry.stamp = {.size = content.size()};
        }
        const auto [known, is_new] =
            m_stored.emplace(entry.hash, std::pair(std::string(), m_pack.size()));
        if (is_new) {
            m_pack += content;
        }
        std::tie(entry.pack, entry.offset) = known->second;
        m_taken.manifest.entries.push_back(std::move(entry));
    }

    /// The name of the pack is known at its end.
    void finish_pack()
    {
        m_pack_name = sha256(m_pack);
        for (Entry& entry : m_taken.manifest.entries) {
            if (entry.pack.empty()) {
                entry.pack = m_pack_name;
            }
        }
        m_taken.written = m_pack.size();
    }

    Result<void> write()
    {
        const bool has_pack =
            std::any_of(m_taken.manifest.entries.begin(), m_taken.manifest.entries.end(),
                        [this](const Entry& entry) { return entry.pack == m_pack_name; });
        if (has_pack && !m_store.size(pack_path(m_pack_name))) {
            (void)m_store.list(k_packs); // removes the temporary file of a killed process
            TRY(m_store.write(pack_path(m_pack_name), m_pack));
        }
        if (m_taken.manifest == m_latest) {
            return m_store.size(tree_path(m_taken.id)) ? Result<void>() : write_tree();
        }
        TRY(write_tree());
        return m_store.write(latest_path(m_found.root), to_text(m_taken.manifest));
    }

    Result<void> write_tree()
    {
        return m_store.write(tree_path(m_taken.id), to_text(m_taken.manifest));
    }

    Store& m_store;
    Candidates m_found;
    FilesBelow m_files;
    std::int64_t m_begin;
    Manifest m_latest;
    std::map<std::string, std::pair<std::string, std::uint64_t>, std::less<>>
        m_stored; ///< pack and offset by hash; no name: the new pack
    std::uint64_t m_bytes = 0;
    int m_pauses_left = k_most_pauses;
    std::string m_pack, m_pack_name;
    Taken m_taken;
};

std::set<std::string> names_in(const nlohmann::json& document, const char* field)
{
    std::set<std::string> names;
    const auto list = document.find(field);
    for (const auto& name :
         list != document.end() && list->is_array() ? *list : nlohmann::json::array()) {
        if (name.is_string()) {
            names.insert(name.get<std::string>());
        }
    }
    return names;
}

Result<std::set<std::string>> listed(Store& store, const char* directory)
{
    const auto names = store.list(directory);
    if (!names && names.error().kind != Error::Kind::missing) {
        return names.error();
    }
    return names ? std::set<std::string>(names->begin(), names->end()) : std::set<std::string>();
}

/// Removes the files that were unused before, and returns the others that are unused now.
Result<std::set<std::string>> remove_those(Store& store, const char* directory,
                                           const std::set<std::string>& existing,
                                           const std::set<std::string>& used,
                                           const std::set<std::string>& before,
                                           std::uint64_t& removed)
{
    std::set<std::string> waiting;
    for (const std::string& name : existing) {
        if (used.contains(name)) {
            continue;
        }
        if (!before.contains(name)) {
            waiting.insert(name);
            continue;
        }
        const std::string path = fmt::format("{}/{}", directory, name);
        removed += store.size(path) ? *store.size(path) : 0;
        TRY(store.remove(path));
    }
    return waiting;
}

} // namespace

Result<Taken> take(Store& store, const std::string& directory,
                   const std::vector<std::string>& command, bool thorough)
{
    TRY_ASSIGN(Candidates found, list_files(directory, command, thorough));
    return Taking(store, std::move(found)).run();
}

Result<Manifest> read(Store& store, const std::string& id)
{
    return read_manifest(store, tree_path(id));
}

Result<std::string> content_of(Store& store, const Entry& entry)
{
    TRY_ASSIGN(std::string content,
               store.read_at(pack_path(entry.pack), entry.offset, entry.stamp.size));
    if (sha256(content) != entry.hash) {
        return fail(Error::Kind::io,
                    fmt::format("{}/{} is damaged: {} has another content than was stored",
                                store.root(), pack_path(entry.pack), entry.path));
    }
    return content;
}

Result<std::uint64_t> remove_unused(Store& store, const std::vector<std::string>& used, Time now)
{
    TRY_ASSIGN(const auto trees, listed(store, k_trees));
    TRY_ASSIGN(const auto packs, listed(store, k_packs));
    TRY_ASSIGN(const auto roots, listed(store, k_latest));
    std::set<std::string> used_trees(used.begin(), used.end());
    std::set<std::string> used_packs;
    const auto use = [&](const Manifest& manifest) {
        for (const Entry& entry : manifest.entries) {
            used_packs.insert(entry.pack);
        }
    };
    // The packs that an unreadable one needs are unknown, so nothing is removed then.
    std::set<std::string> used_roots;
    for (const std::string& root : roots) {
        TRY_ASSIGN(const Manifest manifest,
                   read_manifest(store, fmt::format("{}/{}", k_latest, root)));
        use(manifest); // until it is removed itself
        struct stat status {};
        if (::stat(manifest.root.c_str(), &status) == 0 || errno != ENOENT) {
            used_roots.insert(root);
            used_trees.insert(id_of(manifest));
        }
    }
    for (const std::string& id : trees) {
        TRY_ASSIGN(const Manifest manifest, read(store, id));
        use(manifest); // until it is removed itself
    }
    const auto text = store.read(k_unused);
    const auto before =
        text ? document_in(*text, "unused.json") : Result<nlohmann::json>(text.error());
    const auto since = before ? time_in(*before, "since") : std::nullopt;
    const bool is_due = since && now - *since >= std::chrono::hours(1);
    if (since && !is_due && *since <= now) {
        return std::uint64_t{0};
    }
    std::uint64_t removed = 0;
    const auto old = [&](const char* field) {
        return is_due ? names_in(*before, field) : std::set<std::string>();
    };
    TRY_ASSIGN(const auto trees_left,
               remove_those(store, k_trees, trees, used_trees, old("trees"), removed));
    TRY_ASSIGN(const auto roots_left,
               remove_those(store, k_latest, roots, used_roots, old("roots"), removed));
    TRY_ASSIGN(const auto packs_left,
               remove_those(store, k_packs, packs, used_packs, old("packs"), removed));
    TRY(store.write(k_unused, document_of({{"since", to_iso8601(now)},
                                           {"trees", trees_left},
                                           {"roots", roots_left},
                                           {"packs", packs_left}})));
    return removed;
}

} // namespace gpuq::snapshots
