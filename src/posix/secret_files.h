// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/credentials.h"

namespace gpuq {

/// Credential files on this machine. Thread-safe.
class PosixSecretFiles : public SecretFiles {
public:
    Result<void> make_directory(const std::string& directory) override;
    Result<std::string> read(const std::string& directory, const std::string& name) override;
    Result<std::string> read_own(const std::string& path) override;
    Result<void> write(const std::string& directory, const std::string& name,
                       std::string_view bytes) override;
    Result<void> move(const std::string& directory, const std::string& from,
                      const std::string& to) override;
    Result<Time> written_at(const std::string& directory, const std::string& name) override;
    Result<void> remove(const std::string& directory, const std::string& name) override;
    Result<void> remove_directory(const std::string& directory) override;
};

} // namespace gpuq
