// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"

#include <map>
#include <poll.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::fakes {

/// An in-memory state directory, checked against the same contract as the real one
/// (tests/contract/store_contract.h), with switches for the faults of real file systems.
class MemoryStore : public Store {
public:
    std::map<std::string, std::string> files;
    std::set<std::string> directories{""};
    std::vector<std::string> written; ///< path of every requested write, in order
    int reads = 0;                    ///< calls of read, read_at, size and list

    bool full = false;                ///< every write of new bytes fails: ENOSPC; not an empty file
    bool read_only = false;           ///< mounted read-only: EROFS
    std::set<std::string> unreadable; ///< files and directories whose reads fail with EIO

    /// As on NFS: until `release`, readers see the current content of `path`, or no file.
    void hold(const std::string& path)
    {
        const auto found = files.find(path);
        m_held[path] = found == files.end() ? std::nullopt : std::optional(found->second);
    }
    void release(const std::string& path) { m_held.erase(path); }

    /// Appends without a write request, like a supervisor through its own descriptor.
    void append(const std::string& path, std::string_view bytes)
    {
        make_parents(path);
        files[path] += bytes;
    }

    const std::string& root() const override { return m_root; }

    Result<std::string> read(const std::string& path) override
    {
        TRY_ASSIGN(const std::string content, visible(path));
        if (content.size() > k_largest_small_file) {
            return fail(Error::Kind::io, path + ": File too large");
        }
        return content;
    }

    Result<std::string> read_at(const std::string& path, std::uint64_t offset,
                                std::size_t size) override
    {
        TRY_ASSIGN(const std::string content, visible(path));
        return offset < content.size() ? content.substr(offset, size) : std::string();
    }

    Result<std::uint64_t> size(const std::string& path) override
    {
        TRY_ASSIGN(const std::string content, visible(path));
        return static_cast<std::uint64_t>(content.size());
    }

    Result<void> write(const std::string& path, std::string_view content) override
    {
        TRY(check_writable(path, content.size()));
        make_parents(path);
        files[path] = content;
        return {};
    }

    Result<void> write_once(const std::string& path, std::string_view content) override
    {
        if (files.contains(path) && is_safe(path)) {
            return fail(Error::Kind::busy, path + " already exists");
        }
        return write(path, content);
    }

    Result<void> write_together(const std::vector<NewFile>& together) override
    {
        for (const NewFile& file : together) {
            TRY(write_once(file.path, file.content));
        }
        return {};
    }

    Result<void> append_line(const std::string& path, std::string_view line) override
    {
        TRY(check_writable(path));
        const auto found = files.find(path);
        const bool is_torn =
            found != files.end() && !found->second.empty() && found->second.back() != '\n';
        append(path, (is_torn ? "\n" : "") + std::string(line) + "\n");
        return {};
    }

    Result<void> make_dir(const std::string& path) override
    {
        if (directories.contains(path)) {
            return {};
        }
        TRY(check_writable(path));
        make_parents(path);
        directories.insert(path);
        return {};
    }

    Result<std::vector<std::string>> list(const std::string& path) override
    {
        ++reads;
        if (files.contains(path)) {
            return fail(Error::Kind::io, path + ": Not a directory");
        }
        if (!directories.contains(path)) {
            return fail(Error::Kind::missing, path + ": No such file or directory");
        }
        if (unreadable.contains(path)) {
            return fail(Error::Kind::io, path + ": Input/output error");
        }
        std::vector<std::string> names;
        for (const auto& [file, content] : files) {
            if (parent_of(file) == path) {
                names.push_back(file.substr(file.rfind('/') + 1));
            }
        }
        for (const std::string& directory : directories) {
            if (!directory.empty() && parent_of(directory) == path) {
                names.push_back(directory.substr(directory.rfind('/') + 1));
            }
        }
        return names;
    }

    Result<void> remove(const std::string& path) override
    {
        if (!files.contains(path) && !directories.contains(path)) {
            return {};
        }
        if (read_only) {
            return fail(Error::Kind::io, path + ": Read-only file system");
        }
        if (directories.contains(path) && !list(path)->empty()) {
            return fail(Error::Kind::io, path + ": Directory not empty");
        }
        files.erase(path);
        directories.erase(path);
        return {};
    }

    Result<Descriptor> try_lock(const std::string& path, std::uint32_t byte) override
    {
        if (!is_safe(path)) {
            return fail(Error::Kind::internal, "not a path in the state directory: " + path);
        }
        TRY(check_writable(path));
        make_parents(path);
        files.try_emplace(path);
        Descriptor& held = m_locks[{path, byte}]; // read end of a pipe: at its end once released
        pollfd state{held.get(), POLLIN, 0};
        if (held && ::poll(&state, 1, 0) == 0) {
            return fail(Error::Kind::busy, path + " is locked");
        }
        TRY_ASSIGN(Pipe pipe, make_pipe());
        held = std::move(pipe.read);
        return std::move(pipe.write);
    }

    Result<std::uint64_t> tree_size(const std::string& path) override
    {
        TRY(check_directory(path));
        std::uint64_t size = 0;
        for (const auto& [file, content] : files) {
            size += file.starts_with(path + "/") ? content.size() : 0;
        }
        return size;
    }

    Result<void> remove_tree(const std::string& path) override
    {
        if (!is_safe(path)) {
            return fail(Error::Kind::internal, "not a path in the state directory: " + path);
        }
        if (files.contains(path)) {
            return fail(Error::Kind::io, path + ": Not a directory");
        }
        if (read_only) {
            return fail(Error::Kind::io, path + ": Read-only file system");
        }
        std::erase_if(files,
                      [&](const auto& entry) { return entry.first.starts_with(path + "/"); });
        std::erase_if(directories, [&](const std::string& directory) {
            return directory == path || directory.starts_with(path + "/");
        });
        return {};
    }

private:
    static constexpr std::size_t k_largest_small_file = 4 << 20;

    static bool is_safe(const std::string& path)
    {
        const std::string whole = "/" + path + "/";
        return whole.find("//") == std::string::npos && whole.find("/./") == std::string::npos &&
               whole.find("/../") == std::string::npos;
    }

    static std::string parent_of(const std::string& path)
    {
        const std::size_t slash = path.rfind('/');
        return slash == std::string::npos ? "" : path.substr(0, slash);
    }

    void make_parents(const std::string& path)
    {
        for (std::size_t slash = path.find('/'); slash != std::string::npos;
             slash = path.find('/', slash + 1)) {
            directories.insert(path.substr(0, slash));
        }
    }

    Result<void> check_writable(const std::string& path, std::size_t bytes = 1)
    {
        if (!is_safe(path)) {
            return fail(Error::Kind::internal, "not a path in the state directory: " + path);
        }
        written.push_back(path);
        if (read_only) {
            return fail(Error::Kind::io, path + ": Read-only file system");
        }
        if (full && bytes > 0) {
            return fail(Error::Kind::io, path + ": No space left on device");
        }
        return {};
    }

    Result<void> check_directory(const std::string& path)
    {
        ++reads;
        if (!is_safe(path)) {
            return fail(Error::Kind::internal, "not a path in the state directory: " + path);
        }
        if (files.contains(path)) {
            return fail(Error::Kind::io, path + ": Not a directory");
        }
        return directories.contains(path)
                   ? Result<void>()
                   : fail(Error::Kind::missing, path + ": No such file or directory");
    }

    Result<std::string> visible(const std::string& path)
    {
        ++reads;
        if (!is_safe(path)) {
            return fail(Error::Kind::internal, "not a path in the state directory: " + path);
        }
        if (unreadable.contains(path) || directories.contains(path)) {
            return fail(Error::Kind::io, path + ": Input/output error");
        }
        if (const auto held = m_held.find(path); held != m_held.end()) {
            return held->second ? Result<std::string>(*held->second)
                                : fail(Error::Kind::missing, path + ": No such file or directory");
        }
        const auto found = files.find(path);
        if (found == files.end()) {
            return fail(Error::Kind::missing, path + ": No such file or directory");
        }
        return found->second;
    }

    std::string m_root = "/state";
    std::map<std::string, std::optional<std::string>> m_held;
    std::map<std::pair<std::string, std::uint32_t>, Descriptor> m_locks;
};

} // namespace gpuq::fakes
