// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/redact.h"

#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace gpuq {
namespace {

constexpr std::size_t k_shortest_secret = 4;
/// Shortest single line of a multi-line secret.
constexpr std::size_t k_shortest_line = 8;

/// Substrings of an upper-cased name.
constexpr std::array<std::string_view, 12> k_secret_parts = {
    "TOKEN",  "SECRET", "PASSW",   "PASSPHRASE", "CREDENTIAL", "AUTH",
    "COOKIE", "APIKEY", "PRIVATE", "SIGNATURE",  "WEBHOOK",    "CONNECTION_STRING"};
/// Whole components of a name.
constexpr std::array<std::string_view, 9> k_secret_name_parts = {
    "KEY", "KEYS", "PASS", "PAT", "JWT", "PWD", "DSN", "CREDS", "CRED"};
/// Prefixes of tokens, which continue with letters and digits.
constexpr std::array<std::string_view, 20> k_token_starts = {
    "hf_",    "ghp_", "gho_", "ghu_", "ghs_",  "ghr_",     "github_pat_",
    "glpat-", "sk-",  "AKIA", "ASIA", "xoxb-", "xoxp-",    "xoxa-",
    "xoxs-",  "eyJ",  "AIza", "npm_", "pypi-", "wandb_v1_"};
constexpr std::size_t k_shortest_token = 12; ///< without its prefix

/// Variables whose values are useful for diagnosis. A trailing `*` matches any suffix.
constexpr std::array<std::string_view, 52> k_shown = {"PATH",
                                                      "LD_LIBRARY_PATH",
                                                      "LIBRARY_PATH",
                                                      "CPATH",
                                                      "MANPATH",
                                                      "PYTHONPATH",
                                                      "PYTHONHOME",
                                                      "PYTHONUNBUFFERED",
                                                      "PYTHONNOUSERSITE",
                                                      "HOME",
                                                      "USER",
                                                      "LOGNAME",
                                                      "SHELL",
                                                      "PWD",
                                                      "OLDPWD",
                                                      "TMPDIR",
                                                      "HOSTNAME",
                                                      "TERM",
                                                      "COLORTERM",
                                                      "COLUMNS",
                                                      "LINES",
                                                      "LANG",
                                                      "LANGUAGE",
                                                      "LC_*",
                                                      "TZ",
                                                      "NO_COLOR",
                                                      "DISPLAY",
                                                      "SHLVL",
                                                      "EDITOR",
                                                      "PAGER",
                                                      "XDG_*",
                                                      "CUDA_*",
                                                      "NVIDIA_*",
                                                      "NCCL_*",
                                                      "OMP_*",
                                                      "MKL_*",
                                                      "OPENBLAS_*",
                                                      "TORCH_*",
                                                      "PYTORCH_*",
                                                      "TF_*",
                                                      "XLA_*",
                                                      "JAX_*",
                                                      "CONDA_*",
                                                      "VIRTUAL_ENV",
                                                      "MODULEPATH",
                                                      "LOADEDMODULES",
                                                      "LMOD_*",
                                                      "SLURM_*",
                                                      "SBATCH_*",
                                                      "SRUN_*",
                                                      "GPUQ_*",
                                                      "UCX_*"};

std::string upper(std::string_view text)
{
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
        return c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(c));
    });
    return result;
}

bool is_name_byte(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

bool is_token_byte(char c)
{
    return is_name_byte(c) || c == '.' || c == '+' || c == '/' || c == '=';
}

bool is_shown(std::string_view name)
{
    return std::any_of(k_shown.begin(), k_shown.end(), [&](std::string_view row) {
        return row.ends_with('*') ? name.starts_with(row.substr(0, row.size() - 1)) : name == row;
    });
}

/// Neither a word nor a path nor a number: a mix of letters and digits.
bool is_random(std::string_view value)
{
    const auto is_any = [&](auto kind) {
        return std::any_of(value.begin(), value.end(),
                           [&](unsigned char c) { return kind(c) != 0; });
    };
    return value.size() >= k_shortest_line && !value.starts_with('/') &&
           !is_any([](int c) { return std::isspace(c); }) &&
           is_any([](int c) { return std::isdigit(c); }) &&
           is_any([](int c) { return std::isalpha(c); });
}

/// Escapes `text` for a JSON string.
std::string in_json(std::string_view text)
{
    std::string result;
    for (const char c : text) {
        switch (c) {
        case '"':
        case '\\':
            result += fmt::format("\\{}", c);
            break;
        case '\n':
            result += "\\n";
            break;
        case '\t':
            result += "\\t";
            break;
        default:
            result += c;
        }
    }
    return result;
}

std::string without(std::string text, const std::string& secret)
{
    for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos;
         at += k_removed_secret.size()) {
        text.replace(at, secret.size(), k_removed_secret);
    }
    return text;
}

/// Removes tokens of well-known services.
std::string without_tokens(std::string_view text)
{
    std::string result;
    while (!text.empty()) {
        const bool at_start = result.empty() || !is_name_byte(result.back());
        const auto start =
            std::find_if(k_token_starts.begin(), k_token_starts.end(),
                         [&](std::string_view row) { return at_start && text.starts_with(row); });
        std::size_t size = 0;
        if (start != k_token_starts.end()) {
            while (size < text.size() && is_token_byte(text[size])) {
                ++size;
            }
            size = size >= start->size() + k_shortest_token ? size : 0;
        }
        result += size > 0 ? k_removed_secret : text.substr(0, 1);
        text.remove_prefix(std::max<std::size_t>(size, 1));
    }
    return result;
}

/// Removes the password in `https://user:password@host`.
std::string without_url_passwords(std::string_view text)
{
    std::string result;
    for (std::size_t scheme = 0; (scheme = text.find("://")) != std::string_view::npos;) {
        scheme += 3;
        result += text.substr(0, scheme);
        text.remove_prefix(scheme);
        const std::size_t end = std::min(text.find_first_of("/ \t\r\n\"'<>?#"), text.size());
        const std::size_t at = text.substr(0, end).rfind('@');
        if (at != std::string_view::npos) {
            result += k_removed_secret;
            text.remove_prefix(at);
        }
    }
    return result.append(text);
}

constexpr std::string_view k_key_line_end = "PRIVATE KEY-----";

/// End of the `BEGIN` or `END` marker of a private key at `at`; npos when it is another kind of
/// marker.
std::size_t end_of_key_line(std::string_view text, std::size_t at)
{
    constexpr std::size_t k_longest_kind = 40; // `-----BEGIN ENCRYPTED `
    const std::size_t found = text.find(k_key_line_end, at);
    return found == std::string_view::npos || found - at > k_longest_kind
               ? std::string_view::npos
               : found + k_key_line_end.size();
}

/// Removes private keys, from `-----BEGIN ... PRIVATE KEY-----` to the end marker or the end of the
/// text. If the text begins inside a key, removes up to the end marker.
std::string without_private_keys(std::string text)
{
    for (std::size_t at = 0; (at = text.find("-----BEGIN ", at)) != std::string::npos; ++at) {
        const std::size_t begin = end_of_key_line(text, at);
        if (begin != std::string::npos) {
            const std::size_t end = std::min(text.find("-----END", begin), text.size());
            text.replace(begin, end - begin, k_removed_secret);
        }
    }
    const std::size_t first_end = text.find("-----END ");
    if (first_end < text.find("-----BEGIN ") &&
        end_of_key_line(text, first_end) != std::string::npos) {
        text.replace(0, first_end, k_removed_secret);
    }
    return text;
}

bool is_number(std::string_view text)
{
    return text.find_first_not_of("0123456789.,+-eE%") == std::string_view::npos;
}

/// Position of the value after a name: after `=`, `: ` or `": "`; npos when none follows.
std::size_t value_after(std::string_view text, bool is_option)
{
    std::size_t at = 0;
    const auto skip = [&](std::string_view bytes) {
        at = std::min(text.find_first_not_of(bytes, at), text.size());
    };
    skip("\"'\\");
    const std::size_t before = at;
    skip(" \t");
    if (at < text.size() && (text[at] == '=' || text[at] == ':')) {
        ++at;
        skip(" \t");
    } else if (!is_option || at == before) {
        return std::string_view::npos;
    }
    skip("\"'\\");
    for (const std::string_view scheme : {"Bearer ", "bearer ", "Basic ", "basic ", "Token "}) {
        if (text.substr(at).starts_with(scheme)) {
            at += scheme.size();
        }
    }
    return at;
}

/// Removes values in `password=...`, `"token": "..."`, `--api-key ...`.
std::string without_assignments(std::string_view text)
{
    std::string result;
    while (!text.empty()) {
        std::size_t name_end = 0;
        while (name_end < text.size() && is_name_byte(text[name_end])) {
            ++name_end;
        }
        if (name_end == 0) {
            result += text.front();
            text.remove_prefix(1);
            continue;
        }
        const std::string_view name = text.substr(0, name_end);
        result += name;
        text.remove_prefix(name_end);
        const std::size_t begin = is_secret_name(name) ? value_after(text, name.starts_with("--"))
                                                       : std::string_view::npos;
        if (begin == std::string_view::npos) {
            continue;
        }
        const std::size_t end =
            std::min(text.find_first_of(" \t\r\n\"'\\,;&)}]", begin), text.size());
        const std::string_view value = text.substr(begin, end - begin);
        if (value.size() >= k_shortest_secret && !is_number(value)) {
            result += text.substr(0, begin);
            result += k_removed_secret;
            text.remove_prefix(end);
        }
    }
    return result;
}

} // namespace

bool is_secret_name(std::string_view name)
{
    const std::string text = upper(name);
    if (text == "PWD" || text == "OLDPWD") {
        return false; // directories
    }
    if (std::any_of(k_secret_parts.begin(), k_secret_parts.end(),
                    [&](std::string_view part) { return text.find(part) != std::string::npos; })) {
        return true;
    }
    const std::string framed = "_" + text + "_";
    return std::any_of(k_secret_name_parts.begin(), k_secret_name_parts.end(),
                       [&](std::string_view word) {
                           return framed.find(fmt::format("_{}_", word)) != std::string::npos;
                       });
}

void Redactor::learn(std::string_view secret)
{
    const auto add = [this](std::string text) {
        if (text.size() >= k_shortest_secret &&
            std::find(m_secrets.begin(), m_secrets.end(), text) == m_secrets.end()) {
            m_secrets.push_back(std::move(text));
        }
    };
    add(std::string(secret));
    add(in_json(secret));
    for (std::string_view rest = secret; rest.find('\n') != std::string_view::npos;) {
        rest.remove_prefix(rest.find('\n') + 1);
        const std::string_view line = rest.substr(0, rest.find('\n'));
        if (line.size() >= k_shortest_line) {
            add(std::string(line));
        }
    }
    if (const std::string_view first = secret.substr(0, secret.find('\n'));
        first.size() >= k_shortest_line) {
        add(std::string(first));
    }
    std::sort(m_secrets.begin(), m_secrets.end(), [](const std::string& a, const std::string& b) {
        return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
}

void Redactor::learn_environment(const std::vector<std::string>& environment)
{
    for (const std::string& variable : environment) {
        const auto [name, value] = cut(variable, '=');
        if (is_secret_name(name) || (!is_shown(name) && is_random(value))) {
            learn(value);
        }
    }
}

std::vector<std::string> Redactor::environment(const std::vector<std::string>& environment) const
{
    std::vector<std::string> shown;
    for (const std::string& variable : environment) {
        const auto [name, value] = cut(variable, '=');
        const bool may_be_seen = is_shown(name) && !is_secret_name(name);
        shown.push_back(
            fmt::format("{}={}", name, may_be_seen ? text(value) : std::string(k_removed_secret)));
    }
    return shown;
}

std::vector<std::string> Redactor::redact_arguments(const std::vector<std::string>& arguments) const
{
    std::vector<std::string> shown;
    bool is_value = false;
    for (const std::string& word : arguments) {
        shown.push_back(is_value ? std::string(k_removed_secret) : text(word));
        const bool is_option = word.starts_with('-') && word.find('=') == std::string::npos;
        is_value = is_option && is_secret_name(word);
    }
    return shown;
}

std::string Redactor::document(std::string_view text) const
{
    std::string result(text);
    for (const std::string& secret : m_secrets) {
        result = without(std::move(result), secret);
    }
    return without_private_keys(without_url_passwords(without_tokens(result)));
}

std::string Redactor::text(std::string_view text) const
{
    return without_assignments(document(text));
}

} // namespace gpuq
