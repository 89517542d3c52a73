// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Secrets out of texts that are to be shown to others.
namespace gpuq {

/// What stands in the place of a secret.
constexpr std::string_view k_removed_secret = "[removed]";

/// True for names such as HF_TOKEN, db-password, AWS_SECRET_ACCESS_KEY.
bool is_secret_name(std::string_view name);

/// Takes out the secrets that it was told of, in whatever text they stand, and what looks like one
/// by itself: tokens of well-known services, passwords in URLs, private keys, `password=...`.
/// A secret of fewer than four bytes can't be told from other text, and stays.
class Redactor {
public:
    /// Tells of an environment (NAME=VALUE): the values of all variables that may be secrets.
    void learn_environment(const std::vector<std::string>& environment);
    void learn(std::string_view secret);

    /// Each variable with its name; its value only when it is one of those that a helper needs and
    /// that hold no secret (PATH, LANG, CUDA_VISIBLE_DEVICES, ...).
    std::vector<std::string> environment(const std::vector<std::string>& environment) const;
    /// A command line: also the word after `--token`.
    std::vector<std::string> words(const std::vector<std::string>& words) const;
    /// Output and other prose.
    std::string text(std::string_view text) const;
    /// A document whose members have names such as `key`: these are left alone.
    std::string document(std::string_view text) const;

private:
    std::vector<std::string> m_secrets; ///< longest first
};

} // namespace gpuq
