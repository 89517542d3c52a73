// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/credentials.h"

#include <map>
#include <optional>
#include <string>

namespace gpuq::fakes {

/// Directories with their files, in memory.
class FakeSecretFiles : public SecretFiles {
public:
    std::map<std::string, std::map<std::string, std::string>> directories;
    std::optional<Error> refusal; ///< error returned by every write
    Time now;                     ///< modification time of every write
    std::map<std::string, Time> times;

    Result<void> make_directory(const std::string& directory) override
    {
        if (refusal) {
            return *refusal;
        }
        directories[directory];
        return {};
    }
    Result<std::string> read(const std::string& directory, const std::string& name) override
    {
        const auto place = directories.find(directory);
        if (place == directories.end() || place->second.count(name) == 0) {
            return fail(Error::Kind::missing, directory + "/" + name + ": none");
        }
        return place->second[name];
    }
    Result<std::string> read_own(const std::string& path) override
    {
        const auto slash = path.rfind('/');
        return read(path.substr(0, slash), path.substr(slash + 1));
    }
    Result<void> write(const std::string& directory, const std::string& name,
                       std::string_view bytes) override
    {
        if (refusal) {
            return *refusal;
        }
        if (directories.count(directory) == 0) {
            return fail(Error::Kind::missing, directory + ": none");
        }
        directories[directory][name] = bytes;
        times[directory + "/" + name] = now;
        return {};
    }
    Result<Time> written_at(const std::string& directory, const std::string& name) override
    {
        TRY(read(directory, name));
        return times[directory + "/" + name];
    }
    Result<void> move(const std::string& directory, const std::string& from,
                      const std::string& to) override
    {
        TRY_ASSIGN(const std::string bytes, read(directory, from));
        directories[directory].erase(from);
        return write(directory, to, bytes);
    }
    Result<void> remove(const std::string& directory, const std::string& name) override
    {
        if (const auto place = directories.find(directory); place != directories.end()) {
            place->second.erase(name);
        }
        return {};
    }
    Result<void> remove_directory(const std::string& directory) override
    {
        directories.erase(directory);
        return {};
    }
};

class FakeLoginTickets : public LoginTickets {
public:
    Result<std::string> answer = fail(Error::Kind::missing, "no ticket");
    Result<std::string> bearer = fail(Error::Kind::missing, "no token");
    Result<std::string> cache() override { return answer; }
    Result<std::string> token() override { return bearer; }
};

} // namespace gpuq::fakes
