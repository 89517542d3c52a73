// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/network_login.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sys/random.h>

namespace gpuq {
namespace {

constexpr std::size_t k_nonce_bytes = 16;

/// Nonces are parts of the text that is tagged: with other characters two texts could be the same.
bool is_nonce(std::string_view text)
{
    return text.size() == 2 * k_nonce_bytes &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

} // namespace

NetworkLogin::NetworkLogin(NodeNames names, RunKey key, LinkNumber link, std::string nonce)
    : m_names(std::move(names))
    , m_key(std::move(key))
    , m_link(link)
    , m_nonce(std::move(nonce))
{
}

std::optional<wire::Proof> NetworkLogin::prove(const wire::Challenge& challenge)
{
    if (!m_names.has_secret() || !m_peer.empty() || !is_nonce(challenge.nonce) ||
        !is_nonce(m_nonce)) {
        return std::nullopt;
    }
    m_peer = challenge.nonce;
    return wire::Proof{m_nonce,
                       m_names.proof(NodeNames::End::supervisor, m_key, m_link, m_peer, m_nonce)};
}

std::optional<wire::Answer> NetworkLogin::answer(const wire::Proof& proof) const
{
    // A comparison that takes longer for a better guess helps no one: the next nonces differ.
    const bool proved =
        m_names.has_secret() && is_nonce(m_nonce) && is_nonce(proof.nonce) &&
        proof.tag == m_names.proof(NodeNames::End::supervisor, m_key, m_link, m_nonce, proof.nonce);
    if (!proved) {
        return std::nullopt;
    }
    return wire::Answer{m_names.proof(NodeNames::End::client, m_key, m_link, m_nonce, proof.nonce)};
}

bool NetworkLogin::accepts(const wire::Answer& answer) const
{
    return !m_peer.empty() &&
           answer.tag == m_names.proof(NodeNames::End::client, m_key, m_link, m_peer, m_nonce);
}

std::string random_nonce()
{
    std::array<unsigned char, k_nonce_bytes> bytes{};
    return ::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())
               ? fmt::format("{:02x}", fmt::join(bytes, ""))
               : "";
}

} // namespace gpuq
