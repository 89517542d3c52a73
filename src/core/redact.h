// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Removes secrets from text that is to be shared.
namespace gpuq {

/// Replacement for a secret.
constexpr std::string_view k_removed_secret = "[removed]";

/// True for names such as HF_TOKEN, db-password, AWS_SECRET_ACCESS_KEY.
bool is_secret_name(std::string_view name);

/// Removes known secrets from any text, and everything that looks like a secret: tokens of
/// well-known services, passwords in URLs, private keys, `password=...`. A secret of fewer than
/// four bytes is not removed, since it could match any text.
class Redactor {
public:
    /// Learns the values of all variables in the environment (NAME=VALUE) that may be secrets.
    void learn_environment(const std::vector<std::string>& environment);
    void learn(std::string_view secret);

    /// All variables by name; with their value only if it is useful for diagnosis and not secret
    /// (PATH, LANG, CUDA_VISIBLE_DEVICES, ...).
    std::vector<std::string> environment(const std::vector<std::string>& environment) const;
    /// A command line; also removes the argument after `--token` and the like.
    std::vector<std::string> redact_arguments(const std::vector<std::string>& arguments) const;
    /// Output and other free text.
    std::string text(std::string_view text) const;
    /// A document with members named `key` or the like, whose values are not treated as secrets.
    std::string document(std::string_view text) const;

private:
    std::vector<std::string> m_secrets; ///< longest first
};

} // namespace gpuq
