// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <string>
#include <vector>

namespace gpuq::sim {

/// What everybody has used, fading by half in every half-life, and the fair tree's factor out of
/// it: users in order of how far they are from their share, account by account, the best served
/// last.
class FairShare {
public:
    FairShare(const std::vector<Share>& shares, Seconds half_life);

    /// A number for the user under this account; makes it when it is new.
    int user(const std::string& account, const std::string& user);

    void used(int user, double weighted_gpu_seconds);
    /// Lets `span` pass.
    void fade(Seconds span);
    /// Computes the factors anew.
    void rank();
    /// Between 0 and 1: the share of users that are served at least as well.
    double factor(int user) const { return m_leaves[static_cast<std::size_t>(user)].factor; }
    /// Whether the last rank() gave it another factor than the one before.
    bool moved(int user) const { return m_leaves[static_cast<std::size_t>(user)].moved; }
    bool any_moved() const;

private:
    struct Entry {
        std::string account;
        std::string user; ///< empty: an account
        int parent = -1;  ///< -1: the root
        int shares = 1;
        double use = 0;
        double level = 0; ///< share over use, each of its siblings' sum
        std::vector<int> children;
    };
    struct Leaf {
        int entry = 0;
        double factor = 1;
        bool moved = false;
    };
    int account(const std::string& name, int depth);
    int add(Entry entry);
    void rank(std::vector<int> siblings, int& rank, int& rank_untied, bool tied);
    void weigh(const std::vector<int>& siblings);

    std::vector<Share> m_shares;
    double m_decay; ///< in one second
    std::vector<Entry> m_entries;
    std::vector<int> m_roots;
    std::vector<Leaf> m_leaves;
    std::vector<int> m_leaf_of; ///< by entry, -1 for accounts
    double m_root_use = 0;
};

} // namespace gpuq::sim
