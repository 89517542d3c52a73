// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <string>
#include <vector>

namespace gpuq::sim {

/// The use of all users, which decays by half in every half-life, and the fair tree factor derived
/// from it: users are ranked by their distance from their share, account by account, the best
/// served last.
class FairShare {
public:
    /// `dampening` as in Weights.
    FairShare(const std::vector<Share>& shares, Seconds half_life, int dampening = 0);

    /// An index for the user in this account, which is created if necessary.
    int user(const std::string& account, const std::string& user);

    void used(int user, double weighted_seconds);
    /// The fraction of a use that remains after `span`.
    double kept(Seconds span);
    /// Decays all use by `span`.
    void fade(Seconds span);
    /// Recomputes the fair tree factors.
    void rank();
    /// Without fair tree: weighs the accounts by the current use; each user's factor is computed
    /// when it is next requested, by the use at that time. This is how Slurm does it.
    void weigh_accounts();
    bool is_tree() const { return m_dampening == 0; }
    /// Between 0 and 1; with fair tree: the fraction of users that are served at least as well.
    double factor(int user);
    /// Whether the last computation changed the user's factor.
    bool moved(int user) const { return m_leaves[static_cast<std::size_t>(user)].moved; }
    bool any_moved() const;

private:
    struct Entry {
        std::string account;
        std::string user; ///< empty: an account
        int parent = -1;  ///< -1: the root
        int shares = 1;
        double use = 0;
        double level = 0; ///< share over use among siblings; without fair tree: effective use
        double share = 1; ///< of the total, without fair tree
        std::vector<int> children;
    };
    struct Leaf {
        int entry = 0;
        double factor = 1;
        bool moved = false;
        bool known = true; ///< `factor` is up to date
    };
    int account(const std::string& name, int depth);
    int add(Entry entry);
    void rank(std::vector<int> siblings, int& rank, int& rank_untied, bool tied);
    void weigh(const std::vector<int>& siblings);
    void weigh_without_tree(int entry);
    void weigh_accounts(const std::vector<int>& siblings);

    std::vector<Share> m_shares;
    double m_decay; ///< per second
    std::vector<Entry> m_entries;
    std::vector<int> m_roots;
    std::vector<Leaf> m_leaves;
    std::vector<int> m_leaf_of; ///< by entry, -1 for accounts
    double m_root_use = 0;
    int m_dampening;
    Seconds m_span{0}; ///< the last argument of kept()
    double m_kept = 1; ///< its result
};

} // namespace gpuq::sim
