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
    /// `dampening` as Weights has it.
    FairShare(const std::vector<Share>& shares, Seconds half_life, int dampening = 0);

    /// A number for the user under this account; makes it when it is new.
    int user(const std::string& account, const std::string& user);

    void used(int user, double weighted_seconds);
    /// What is left of a use after `span`.
    double kept(Seconds span);
    /// Lets `span` pass.
    void fade(Seconds span);
    /// Computes the factors of the fair tree anew.
    void rank();
    /// Where there is no tree: weighs the accounts by what is known now, and has each user's factor
    /// computed when it is asked for next, by what is known then. This is how Slurm does it.
    void weigh_accounts();
    bool is_tree() const { return m_dampening == 0; }
    /// Between 0 and 1: of the tree, the share of users that are served at least as well.
    double factor(int user);
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
        double level = 0; ///< share over use, each of its siblings' sum; without a tree: of all
        double share = 1; ///< of all, where there is no tree
        std::vector<int> children;
    };
    struct Leaf {
        int entry = 0;
        double factor = 1;
        bool moved = false;
        bool known = true; ///< `factor` is
    };
    int account(const std::string& name, int depth);
    int add(Entry entry);
    void rank(std::vector<int> siblings, int& rank, int& rank_untied, bool tied);
    void weigh(const std::vector<int>& siblings);
    void weigh_without_tree(int entry);
    void weigh_accounts(const std::vector<int>& siblings);

    std::vector<Share> m_shares;
    double m_decay; ///< in one second
    std::vector<Entry> m_entries;
    std::vector<int> m_roots;
    std::vector<Leaf> m_leaves;
    std::vector<int> m_leaf_of; ///< by entry, -1 for accounts
    double m_root_use = 0;
    int m_dampening;
    Seconds m_span{0}; ///< of which kept() has last been asked
    double m_kept = 1; ///< its answer
};

} // namespace gpuq::sim
