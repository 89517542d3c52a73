// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/node_names.h"

#include "core/layout.h"
#include "io/private_dir.h"

#include <fmt/format.h>

#include <cstddef>

namespace gpuq {
namespace {

/// Several candidates per name, since a process that has seen one in use could occupy it.
/// Predicting the next one requires the secret.
constexpr int k_candidates = 3;

int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

} // namespace

NodeNames::NodeNames(std::string_view secret)
{
    SipKey key{};
    if (secret.size() != 2 * key.size()) {
        return;
    }
    for (std::size_t i = 0; i < key.size(); ++i) {
        const int high = digit(secret[2 * i]), low = digit(secret[2 * i + 1]);
        if (high < 0 || low < 0) {
            return;
        }
        key[i] = static_cast<unsigned char>(high << 4 | low);
    }
    m_key = key;
}

std::string NodeNames::tag(std::string_view text) const
{
    return m_key ? fmt::format("{:016x}", siphash(*m_key, text)) : "";
}

std::vector<std::string> NodeNames::sockets(unsigned uid, const RunKey& key, LinkNumber link) const
{
    std::vector<std::string> names;
    for (int i = 0; m_key && i < k_candidates; ++i) {
        names.push_back(fmt::format(
            "gpuq-{}/{}", uid, tag(fmt::format("socket {}.{} {}", key.text(), link.value, i))));
    }
    names.push_back(layout::socket(uid, key, link));
    return names;
}

std::vector<std::string> NodeNames::directories(std::string_view purpose, unsigned uid,
                                                const RunKey& key, LinkNumber link) const
{
    const std::string prefix = private_dir_prefix(purpose, uid);
    std::vector<std::string> paths;
    for (int i = 0; m_key && i < k_candidates; ++i) {
        paths.push_back(prefix +
                        tag(fmt::format("{} {}.{} {}", purpose, key.text(), link.value, i)));
    }
    if (paths.empty()) {
        paths.push_back(fmt::format("{}{}.{}", prefix, key.text(), link.value));
    }
    return paths;
}

std::string NodeNames::proof(End end, const RunKey& key, LinkNumber link,
                             std::string_view client_nonce, std::string_view supervisor_nonce) const
{
    return tag(fmt::format("network {} {}.{} {} {}", end == End::client ? "client" : "supervisor",
                           key.text(), link.value, client_nonce, supervisor_nonce));
}

std::string NodeNames::lock(const std::string& name) const
{
    return m_key ? fmt::format("{}-{}", name, tag("lock " + name)) : name;
}

} // namespace gpuq
