// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/fair_share.h"

#include "sim/at.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpuq::sim {
namespace {

constexpr int k_deepest = 16; // deeper than any real tree; ends a loop of parents

} // namespace

FairShare::FairShare(const std::vector<Share>& shares, Seconds half_life, int dampening)
    : m_shares(shares)
    // ln 2, rounded as in Slurm.
    , m_decay(half_life > Seconds{0} ? 1 - 0.693 / static_cast<double>(half_life.count()) : 1)
    , m_dampening(dampening)
{
}

int FairShare::add(Entry entry)
{
    const int index = static_cast<int>(m_entries.size());
    (entry.parent < 0 ? m_roots : m_entries[at(entry.parent)].children).push_back(index);
    m_entries.push_back(std::move(entry));
    m_leaf_of.push_back(-1);
    return index;
}

int FairShare::account(const std::string& name, int depth)
{
    for (std::size_t i = 0; i < m_entries.size(); ++i) {
        if (m_entries[i].user.empty() && m_entries[i].account == name) {
            return static_cast<int>(i);
        }
    }
    Entry entry{.account = name};
    for (const Share& share : m_shares) {
        if (share.user.empty() && share.account == name) {
            entry.shares = share.shares;
            if (!share.parent.empty() && depth < k_deepest) {
                entry.parent = account(share.parent, depth + 1);
            }
        }
    }
    return add(std::move(entry));
}

int FairShare::user(const std::string& account_name, const std::string& user)
{
    const int parent = account(account_name, 0);
    for (const int child : m_entries[at(parent)].children) {
        if (m_leaf_of[at(child)] >= 0 && m_entries[at(child)].user == user) {
            return m_leaf_of[at(child)];
        }
    }
    Entry entry{.account = account_name, .user = user, .parent = parent};
    for (const Share& share : m_shares) {
        if (share.account == account_name && share.user == user && !user.empty()) {
            entry.shares = share.shares;
        }
    }
    const int leaf = static_cast<int>(m_leaves.size());
    const int index = add(std::move(entry));
    m_leaf_of[at(index)] = leaf;
    m_leaves.push_back({index, 1});
    return leaf;
}

void FairShare::used(int user, double weighted_seconds)
{
    m_root_use += weighted_seconds;
    for (int entry = m_leaves[at(user)].entry; entry >= 0; entry = m_entries[at(entry)].parent) {
        m_entries[at(entry)].use += weighted_seconds;
    }
}

double FairShare::kept(Seconds span)
{
    if (span != m_span) { // nearly always the calculation period
        m_span = span;
        m_kept = std::pow(m_decay, static_cast<double>(span.count()));
    }
    return m_kept;
}

void FairShare::fade(Seconds span)
{
    const double factor = kept(span);
    m_root_use *= factor;
    for (Entry& entry : m_entries) {
        entry.use *= factor;
    }
}

void FairShare::weigh(const std::vector<int>& siblings)
{
    for (const int index : siblings) {
        Entry& entry = m_entries[at(index)];
        const auto& family = entry.parent < 0 ? m_roots : m_entries[at(entry.parent)].children;
        double shares = 0;
        for (const int sibling : family) {
            shares += m_entries[at(sibling)].shares;
        }
        const double above = entry.parent < 0 ? m_root_use : m_entries[at(entry.parent)].use;
        const double share = shares > 0 ? entry.shares / shares : 0;
        const double use = above > 0 ? entry.use / above : 0;
        entry.level = share <= 0 ? 0
                      : use > 0  ? share / use
                                 : std::numeric_limits<double>::infinity();
    }
}

void FairShare::rank(std::vector<int> siblings, int& rank_now, int& rank_untied, bool tied)
{
    weigh(siblings);
    const auto is_user = [&](int index) { return m_leaf_of[at(index)] >= 0; };
    std::stable_sort(siblings.begin(), siblings.end(), [&](int a, int b) {
        if (m_entries[at(a)].level != m_entries[at(b)].level) {
            return m_entries[at(a)].level > m_entries[at(b)].level;
        }
        return is_user(a) && !is_user(b);
    });
    for (std::size_t i = 0; i < siblings.size(); ++i) {
        const double level = m_entries[at(siblings[i])].level;
        const bool ties = i == 0 ? tied : m_entries[at(siblings[i - 1])].level == level;
        if (is_user(siblings[i])) {
            rank_now = ties ? rank_now : rank_untied;
            Leaf& leaf = m_leaves[at(m_leaf_of[at(siblings[i])])];
            const double factor = rank_now / static_cast<double>(m_leaves.size());
            leaf.moved = factor != leaf.factor;
            leaf.factor = factor;
            --rank_untied;
            continue;
        }
        // Accounts of the same level are ranked as one.
        std::vector<int> children = m_entries[at(siblings[i])].children;
        while (i + 1 < siblings.size() && m_entries[at(siblings[i + 1])].level == level) {
            ++i;
            const auto& more = m_entries[at(siblings[i])].children;
            children.insert(children.end(), more.begin(), more.end());
        }
        rank(std::move(children), rank_now, rank_untied, ties);
    }
}

/// The algorithm before fair tree: a user's factor is halved for each share that the user and, in
/// part, the siblings have used.
void FairShare::weigh_without_tree(int index)
{
    Entry& entry = m_entries[at(index)];
    const auto& family = entry.parent < 0 ? m_roots : m_entries[at(entry.parent)].children;
    double all = 0;
    for (const int sibling : family) {
        all += m_entries[at(sibling)].shares;
    }
    const double part = all > 0 ? entry.shares / all : 0;
    const double use = m_root_use > 0 ? entry.use / m_root_use : 0;
    if (entry.parent < 0) {
        entry.share = part;
        entry.level = use;
        return;
    }
    const Entry& above = m_entries[at(entry.parent)];
    entry.share = above.share * part;
    entry.level = use + (above.level - use) * part;
}

void FairShare::weigh_accounts(const std::vector<int>& siblings)
{
    for (const int index : siblings) {
        if (m_leaf_of[at(index)] >= 0) {
            m_leaves[at(m_leaf_of[at(index)])].known = false;
        } else {
            weigh_without_tree(index);
            weigh_accounts(m_entries[at(index)].children);
        }
    }
}

void FairShare::weigh_accounts()
{
    weigh_accounts(m_roots);
}

double FairShare::factor(int user)
{
    Leaf& leaf = m_leaves[at(user)];
    if (!leaf.known) {
        leaf.known = true;
        weigh_without_tree(leaf.entry);
        const Entry& entry = m_entries[at(leaf.entry)];
        const double factor =
            entry.share > 0 ? std::pow(2, -entry.level / entry.share / m_dampening) : 0;
        leaf.moved = factor != leaf.factor;
        leaf.factor = factor;
    }
    return leaf.factor;
}

bool FairShare::any_moved() const
{
    return std::any_of(m_leaves.begin(), m_leaves.end(),
                       [](const Leaf& leaf) { return leaf.moved; });
}

void FairShare::rank()
{
    int now = static_cast<int>(m_leaves.size());
    int untied = now;
    rank(m_roots, now, untied, false);
}

} // namespace gpuq::sim
