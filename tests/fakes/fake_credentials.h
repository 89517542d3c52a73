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
    std::map<std::string, std::map<std::string, std::string>> folders;
    std::optional<Error> refusal; ///< error returned by every write
    Time now;                     ///< modification time of every write
    std::map<std::string, Time> times;

    Result<void> make_folder(const std::string& folder) override
    {
        if (refusal) {
            return *refusal;
        }
        folders[folder];
        return {};
    }
    Result<std::string> read(const std::string& folder, const std::string& name) override
    {
        const auto place = folders.find(folder);
        if (place == folders.end() || place->second.count(name) == 0) {
            return fail(Error::Kind::missing, folder + "/" + name + ": none");
        }
        return place->second[name];
    }
    Result<std::string> read_own(const std::string& path) override
    {
        const auto slash = path.rfind('/');
        return read(path.substr(0, slash), path.substr(slash + 1));
    }
    Result<void> write(const std::string& folder, const std::string& name,
                       std::string_view bytes) override
    {
        if (refusal) {
            return *refusal;
        }
        if (folders.count(folder) == 0) {
            return fail(Error::Kind::missing, folder + ": none");
        }
        folders[folder][name] = bytes;
        times[folder + "/" + name] = now;
        return {};
    }
    Result<Time> written_at(const std::string& folder, const std::string& name) override
    {
        TRY(read(folder, name));
        return times[folder + "/" + name];
    }
    Result<void> move(const std::string& folder, const std::string& from,
                      const std::string& to) override
    {
        TRY_ASSIGN(const std::string bytes, read(folder, from));
        folders[folder].erase(from);
        return write(folder, to, bytes);
    }
    Result<void> remove(const std::string& folder, const std::string& name) override
    {
        if (const auto place = folders.find(folder); place != folders.end()) {
            place->second.erase(name);
        }
        return {};
    }
    Result<void> remove_folder(const std::string& folder) override
    {
        folders.erase(folder);
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
