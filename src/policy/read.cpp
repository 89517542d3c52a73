// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/read.h"

#include "core/host_list.h"
#include "policy/check.h"
#include "policy/reader.h"
#include "policy/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace gpuq::policy {
namespace {

using yaml::Node;
using Need = Reader::Need;

constexpr int k_most_shares = 64;  ///< of a GPU
constexpr int k_most_threads = 16; ///< per core; POWER has 8

GpuModel model_in(Reader& reader, const std::string& name, const Node& place, const Node& node)
{
    GpuModel model;
    model.name = name;
    model.line = place.line;
    reader.map(node, fmt::format("model {}", name),
               {
                   {"memory", [&](const Node& value) { model.memory_mib = reader.memory(value); }},
                   {"weight", [&](const Node& value) { model.weight = reader.weight(value); }},
               });
    return model;
}

Rule<std::vector<std::string>> hosts_in(Reader& reader, const Node& node)
{
    const Rule<std::string> text = reader.text(node);
    if (text.line == 0) {
        return {};
    }
    if (text.value == "ALL") {
        return {{"ALL"}, node.line, node.column};
    }
    auto hosts = expand_hosts(text.value);
    if (!hosts) {
        reader.note(node, "not-nodes", hosts.error().text);
        return {};
    }
    return {*std::move(hosts), node.line, node.column};
}

/// slurmd runs the probe with an almost empty environment, so that PATH can't be used.
Maybe<std::vector<std::string>> probe_in(Reader& reader, const Node& node)
{
    auto arguments = reader.some_texts(node);
    if (arguments.value.empty() || !arguments.value.front().starts_with('/')) {
        reader.note(node, "not-a-path",
                    "a probe is the path of a program, beginning with /, or a list of it and its "
                    "words");
        return std::nullopt;
    }
    return arguments;
}

Lend lend_in(Reader& reader, const Node& node)
{
    Lend lend;
    lend.line = node.line;
    reader.map(node, "lend",
               {
                   {"grace", [&](const Node& value) { lend.grace = reader.duration(value); }},
                   {"min_run", [&](const Node& value) { lend.min_run = reader.duration(value); }},
                   {"probe", [&](const Node& value) { lend.probe = probe_in(reader, value); }},
                   {"when", [&](const Node& value) { lend.when = when_in(reader, value); }},
               });
    return lend;
}

Shares shares_in(Reader& reader, const Node& node)
{
    Shares shares;
    shares.line = node.line;
    reader.map(
        node, "shares",
        {
            {"per_gpu",
             [&](const Node& value) { shares.per_gpu = reader.number(value, 2, k_most_shares); },
             Need::yes},
        });
    return shares;
}

Pool pool_in(Reader& reader, const std::string& name, const Node& place, const Node& node)
{
    Pool pool;
    pool.name = name;
    pool.line = place.line;
    reader.map(node, fmt::format("pool {}", name),
               {
                   {"nodes",
                    [&](const Node& value) {
                        pool.nodes = hosts_in(reader, value);
                        pool.node_list = value.text;
                    },
                    Need::yes},
                   {"gpus", [&](const Node& value) { pool.gpus = reader.gpus(value); }},
                   {"threads_per_core",
                    [&](const Node& value) {
                        pool.threads_per_core = reader.number(value, 1, k_most_threads);
                    }},
                   {"owner", [&](const Node& value) { pool.owner = reader.name(value); }},
                   {"lend", [&](const Node& value) { pool.lend = lend_in(reader, value); }},
                   {"shares", [&](const Node& value) { pool.shares = shares_in(reader, value); }},
                   {"when", [&](const Node& value) { pool.when = when_in(reader, value); }},
               });
    return pool;
}

FairShare fair_share_in(Reader& reader, const Node& node)
{
    FairShare fair;
    // Slurm has whole minutes, and takes 0 for "past use never decays".
    const auto half_life = [&](const Node& value) {
        const Rule<minutes> time = reader.walltime(value);
        fair.half_life = {time.value, time.line, time.column};
    };
    const auto shares = [&](const Node& value) {
        if (value.kind != Node::Kind::map) {
            reader.note(value, "not-a-map", "shares must be `ACCOUNT: NUMBER` lines");
            return;
        }
        for (const Node::Entry& entry : value.entries) {
            if (entry.key == "root") { // all accounts are below it: it competes with none
                reader.note(entry.key_node, "not-a-name",
                            "account root has no share: name another");
            } else if (reader.user_names(entry.key_node).value.size() == 1) {
                fair.shares.push_back({entry.key, reader.number(entry.value, 1)});
            }
        }
    };
    reader.map(node, "fair_share",
               {
                   {"half_life", half_life},
                   {"shares", shares},
               });
    return fair;
}

Rule<Course::Repeat> repeat_in(Reader& reader, const Node& node)
{
    constexpr std::array<std::pair<std::string_view, Course::Repeat>, 4> k_keywords{
        {{"once", Course::Repeat::once},
         {"daily", Course::Repeat::daily},
         {"weekdays", Course::Repeat::weekdays},
         {"weekly", Course::Repeat::weekly}}};
    const auto word = std::find_if(k_keywords.begin(), k_keywords.end(),
                                   [&](const auto& row) { return row.first == node.text; });
    if (node.kind != Node::Kind::text || word == k_keywords.end()) {
        reader.note(node, "not-a-word",
                    fmt::format("'{}' is not one of once, daily, weekdays, weekly", node.text));
        return {};
    }
    return {word->second, node.line, node.column};
}

Course course_in(Reader& reader, const std::string& name, const Node& place, const Node& node)
{
    Course course;
    course.name = name;
    course.line = place.line;
    const auto start = [&](const Node& value) {
        course.start = {local_time_in(reader, value), value.line, value.column};
    };
    reader.map(
        node, fmt::format("course {}", name),
        {
            {"nodes",
             [&](const Node& value) {
                 course.nodes = hosts_in(reader, value);
                 course.node_list = value.text;
             },
             Need::yes},
            {"start", start, Need::yes},
            {"duration", [&](const Node& value) { course.duration = reader.walltime(value); },
             Need::yes},
            {"repeat", [&](const Node& value) { course.repeat = repeat_in(reader, value); }},
            {"users", [&](const Node& value) { course.users = reader.user_names(value).value; }},
            {"accounts",
             [&](const Node& value) { course.accounts = reader.user_names(value).value; }},
        });
    if (course.users.empty() && course.accounts.empty()) {
        reader.note(place, "missing", fmt::format("course {} needs 'users' or 'accounts'", name));
    }
    if (!course.users.empty() && !course.accounts.empty()) {
        reader.note(
            place, "contradicts",
            fmt::format("course {} has both users and accounts, and Slurm would let in only "
                        "those users as members of those accounts: name the users, or an "
                        "account that all of them have",
                        name));
    }
    return course;
}

ReserveRule reserve_in(Reader& reader, const Node& node)
{
    ReserveRule rule;
    rule.line = node.line;
    reader.map(
        node, "reserve",
        {
            {"users", [&](const Node& value) { rule.users = reader.user_names(value).value; }},
            {"accounts",
             [&](const Node& value) { rule.accounts = reader.user_names(value).value; }},
            {"pools", [&](const Node& value) { rule.pools = reader.some_names(value); }},
            {"ahead", [&](const Node& value) { rule.ahead = reader.walltime(value); }},
            {"longest", [&](const Node& value) { rule.longest = reader.walltime(value); }},
            {"most", [&](const Node& value) { rule.most = reader.number(value, 1); }},
        });
    if (rule.users.empty() && rule.accounts.empty()) {
        reader.note(node, "missing", "reserve needs 'users' or 'accounts'");
    }
    return rule;
}

HelpDesk help_desk_in(Reader& reader, const Node& node)
{
    HelpDesk desk;
    desk.line = node.line;
    const auto rights = [&](const Node& value) {
        const std::vector<Node> single{value};
        for (const Node& item : value.kind == Node::Kind::list ? value.items : single) {
            const auto word = reader.word(item, {"stop", "extend", "see"});
            desk.stop = desk.stop || word.value == "stop";
            desk.extend = desk.extend || word.value == "extend";
            desk.see = desk.see || word.value == "see";
        }
        if (value.kind == Node::Kind::list && value.items.empty()) {
            reader.note(value, "missing", "may needs 'stop', 'extend' or 'see'");
        }
    };
    reader.map(
        node, "help_desk",
        {
            {"users", [&](const Node& value) { desk.users = reader.user_names(value).value; },
             Need::yes},
            {"may", rights, Need::yes},
        });
    return desk;
}

void published_names_in(Reader& reader, Publish& publish, const Node& node)
{
    using Use = Publish::Use;
    const std::vector<Node> single{node};
    for (const Node& item : node.kind == Node::Kind::list ? node.items : single) {
        const auto word = reader.word(item, {"labs", "accounts", "courses"});
        const Use use = word.value == "labs"       ? Use::by_lab
                        : word.value == "accounts" ? Use::by_account
                                                   : Use::by_model;
        publish.courses = publish.courses || word.value == "courses";
        if (use != Use::by_model && publish.use != Use::by_model && publish.use != use) {
            reader.note(item, "both",
                        "labs and accounts together would show, as a difference, the rows that are "
                        "left out: list one of them");
        }
        publish.use = use != Use::by_model ? use : publish.use;
    }
}

Publish publish_in(Reader& reader, const Node& node)
{
    Publish publish;
    publish.line = node.line;
    reader.map(
        node, "publish",
        {
            {"names", [&](const Node& value) { published_names_in(reader, publish, value); }},
            {"least_users",
             [&](const Node& value) { publish.least_users = reader.number(value, 2); }},
        });
    return publish;
}

void version_in(Reader& reader, const Node& node)
{
    if (node.kind != Node::Kind::text || node.text != "1") {
        reader.note(node, "version", "this gpuq reads version 1 only");
    }
}

void policy_in(Reader& reader, Policy& policy, const Node& root)
{
    const auto each = [&reader](std::string_view what, auto& list, auto read) {
        return [&reader, what, &list, read](const Node& node) {
            reader.names(node, what,
                         [&](const std::string& name, const Node& place, const Node& value) {
                             list.push_back(read(reader, name, place, value));
                         });
        };
    };
    const auto model = [](Reader& its, const std::string& name, const Node& place,
                          const Node& value) { return model_in(its, name, place, value); };
    const Node* sweeps = nullptr; // concerns pools and queues that may follow it
    const Need needed = root.find("site") == nullptr ? Need::yes : Need::no;
    reader.map(
        root, "the policy",
        {
            {"version", [&](const Node& node) { version_in(reader, node); }, Need::yes},
            {"gpus", each("gpus", policy.gpus, model)},
            {"pools", each("pools", policy.pools, pool_in), needed},
            {"queues", each("queues", policy.queues, queue_in), needed},
            {"sweeps", [&](const Node& node) { sweeps = &node; }},
            {"default_queue", [&](const Node& node) { policy.default_queue = reader.name(node); }},
            {"fair_share",
             [&](const Node& node) { policy.fair_share = fair_share_in(reader, node); }},
            {"courses", each("courses", policy.courses, course_in)},
            {"reserve", [&](const Node& node) { policy.reserve = reserve_in(reader, node); }},
            {"publish", [&](const Node& node) { policy.publish = publish_in(reader, node); }},
            {"helper", [&](const Node& node) { policy.helper = reader.name(node); }},
            {"help_desk", [&](const Node& node) { policy.help_desk = help_desk_in(reader, node); }},
            {"site", [&](const Node& node) { policy.site = site_in(reader, node); }},
            {"tests", [&](const Node& node) { policy.tests = tests_in(reader, node); }},
        });
    if (sweeps != nullptr) {
        add_sweep_queue(reader, policy, *sweeps);
    }
}

} // namespace

Result<Reading> read_policy(std::string_view text, const std::string& file)
{
    if (text.size() > k_most_bytes) {
        return fail(Error::Kind::usage,
                    fmt::format("{}: larger than {} KiB", file, k_most_bytes / 1024));
    }
    TRY_ASSIGN(const Node root, yaml::parse(text, file));
    Reader reader;
    Reading reading;
    reading.policy.file = file;
    policy_in(reader, reading.policy, root);
    reading.findings = reader.take();
    // If the text has errors, the policy is incomplete and not checked further.
    if (!has_errors(reading.findings)) {
        reading.findings = check(reading.policy);
    }
    std::stable_sort(
        reading.findings.begin(), reading.findings.end(),
        [](const Finding& left, const Finding& right) { return left.line < right.line; });
    return reading;
}

} // namespace gpuq::policy
