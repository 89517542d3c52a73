// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/read.h"

#include "core/host_list.h"
#include "core/number.h"
#include "policy/check.h"
#include "policy/reader.h"
#include "policy/submission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

namespace gpuq::policy {
namespace {

using yaml::Node;
using Need = Reader::Need;

constexpr int k_many = 1'000'000;
constexpr int k_most_shares = 64;  ///< of a GPU
constexpr int k_most_threads = 16; ///< per core; POWER has 8
constexpr seconds k_idle_warning = std::chrono::minutes(5);

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

/// `k80:4`, `4`, `k80:2,p100:2`.
Rule<std::vector<GpuCount>> gpus_in(Reader& reader, const Node& node)
{
    auto counts = node.kind == Node::Kind::text
                      ? parse_gpu_counts(node.text)
                      : Result<std::vector<GpuCount>>(fail(Error::Kind::usage, "no text"));
    if (!counts || counts->empty()) {
        reader.note(node, "not-gpus",
                    fmt::format("'{}' is not a number of GPUs such as 4, k80:4 or k80:2,p100:2",
                                node.text));
        return {};
    }
    return {*std::move(counts), node.line, node.column};
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

constexpr std::array<std::string_view, 7> k_days{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

/// The position in the week, of a day such as `mon`.
std::optional<std::size_t> day_of(std::string_view text)
{
    const auto* const found = std::find(k_days.begin(), k_days.end(), text);
    return found == k_days.end() ? std::nullopt
                                 : std::optional(static_cast<std::size_t>(found - k_days.begin()));
}

/// `mon-fri`, `sat`, `daily`; a range may pass the end of the week.
void add_days(Reader& reader, Window& window, const Node& node)
{
    const std::string_view text = node.kind == Node::Kind::text ? node.text : std::string_view();
    if (text == "daily") {
        window.days.fill(true);
        return;
    }
    const std::size_t dash = text.find('-');
    const auto first = day_of(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : day_of(text.substr(dash + 1));
    if (!first || !last) {
        reader.note(
            node, "not-a-word",
            fmt::format("'{}' is not daily, a day such as mon, or a range such as mon-fri", text));
        return;
    }
    for (std::size_t day = *first;; day = (day + 1) % k_days.size()) {
        window.days.at(day) = true;
        if (day == *last) {
            return;
        }
    }
}

void days_in(Reader& reader, Window& window, const Node& node)
{
    window.days.fill(false);
    const std::vector<Node> single{node};
    for (const Node& item : node.kind == Node::Kind::list ? node.items : single) {
        add_days(reader, window, item);
    }
}

/// `08:00`, up to `most`.
std::optional<minutes> time_of_day_in(Reader& reader, const Node& node, minutes most)
{
    const std::string_view text = node.kind == Node::Kind::text ? node.text : std::string_view();
    const auto hours = text.size() == 5 ? whole_number(text.substr(0, 2)) : std::nullopt;
    const auto rest = text.size() == 5 ? whole_number(text.substr(3)) : std::nullopt;
    const bool fits = hours && rest && text[2] == ':' && *hours <= 24 && *rest <= 59;
    const minutes time = fits ? std::chrono::hours(*hours) + minutes(*rest) : minutes{0};
    if (!fits || time > most) {
        reader.note(node, "not-a-time",
                    fmt::format("'{}' is not a time of day from 00:00 to {}", text,
                                most == std::chrono::hours(24) ? "24:00" : "23:59"));
        return std::nullopt;
    }
    return time;
}

Window window_in(Reader& reader, const Node& node)
{
    constexpr minutes k_day = std::chrono::hours(24);
    Window window;
    std::optional<minutes> from{window.from};
    std::optional<minutes> to{window.to};
    reader.map(
        node, "when",
        {
            {"days", [&](const Node& value) { days_in(reader, window, value); }},
            {"from",
             [&](const Node& value) { from = time_of_day_in(reader, value, k_day - minutes(1)); }},
            {"to", [&](const Node& value) { to = time_of_day_in(reader, value, k_day); }},
        });
    if (from && from == to) {
        reader.note(node, "contradicts",
                    "from and to are the same time; leave both out for all day");
    }
    window.from = from.value_or(window.from);
    window.to = to.value_or(window.to);
    if (node.kind != Node::Kind::text && node.entries.empty()) {
        reader.note(node, "missing", "when needs one of 'days', 'from' and 'to'");
    }
    return window;
}

/// One map or a list of them.
Hours when_in(Reader& reader, const Node& node)
{
    Hours hours;
    const std::vector<Node> single{node};
    for (const Node& item : node.kind == Node::Kind::list ? node.items : single) {
        hours.push_back(window_in(reader, item));
    }
    if (hours.empty()) {
        reader.note(node, "missing", "when needs one of 'days', 'from' and 'to'");
    }
    return hours;
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
                   {"gpus", [&](const Node& value) { pool.gpus = gpus_in(reader, value); }},
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

Share share_in(Reader& reader, std::string_view what, const Node& node)
{
    Share share;
    const auto into = [&reader](Maybe<int>& limit, int least) {
        return [&reader, &limit, least](const Node& value) {
            limit = reader.number(value, least, k_many);
        };
    };
    reader.map(node, what,
               {
                   {"gpus", into(share.gpus, 1)},
                   {"soft_gpus", into(share.soft_gpus, 1)},
                   {"jobs", into(share.jobs, 1)},
                   {"queued", into(share.queued, 1)},
                   {"gpu_hours_ahead", into(share.gpu_hours_ahead, 1)},
                   {"shares", into(share.shares, 1)},
               });
    return share;
}

Limits limits_in(Reader& reader, const Node& node)
{
    Limits limits;
    const auto into = [&reader](Share& share, std::string_view what) {
        return
            [&reader, &share, what](const Node& value) { share = share_in(reader, what, value); };
    };
    const auto job = [&](const Node& value) {
        reader.map(
            value, "the limits of a job",
            {
                {"gpus",
                 [&](const Node& gpus) { limits.job.gpus = reader.number(gpus, 0, k_many); }},
                {"nodes",
                 [&](const Node& nodes) { limits.job.nodes = reader.number(nodes, 1, k_many); }},
                {"shares",
                 [&](const Node& shares) { limits.job.shares = reader.number(shares, 1, k_many); }},
            });
    };
    reader.map(node, "limits",
               {
                   {"user", into(limits.user, "the limits of a user")},
                   {"account", into(limits.account, "the limits of an account")},
                   {"all", into(limits.all, "the limits of all together")},
                   {"job", job},
               });
    return limits;
}

Access access_in(Reader& reader, const Node& node)
{
    Access access;
    access.line = node.line;
    reader.map(
        node, "allow",
        {
            {"users", [&](const Node& value) { access.users = reader.user_names(value).value; }},
            {"accounts",
             [&](const Node& value) { access.accounts = reader.user_names(value).value; }},
            {"ask", [&](const Node& value) { access.ask = reader.text(value); }},
        });
    return access;
}

WaitTarget wait_in(Reader& reader, const Node& node)
{
    WaitTarget wait;
    reader.map(node, "wait",
               {
                   {"p50", [&](const Node& value) { wait.p50 = reader.walltime(value); }},
                   {"p95", [&](const Node& value) { wait.p95 = reader.walltime(value); }},
                   {"max", [&](const Node& value) { wait.max = reader.walltime(value); }},
               });
    return wait;
}

/// A value that must be one of `arguments`.
Rule<std::string> word_in(Reader& reader, const Node& node,
                          const std::vector<std::string>& arguments)
{
    if (node.kind != Node::Kind::text ||
        std::find(arguments.begin(), arguments.end(), node.text) == arguments.end()) {
        reader.note(node, "not-a-word",
                    fmt::format("'{}' is not {}", node.text, fmt::join(arguments, " or ")));
        return {};
    }
    return {node.text, node.line, node.column};
}

ChainRule chain_in(Reader& reader, const Node& node)
{
    ChainRule chain;
    chain.line = node.line;
    reader.map(
        node, "chain",
        {
            {"link", [&](const Node& value) { chain.link = reader.walltime(value); }},
            {"links", [&](const Node& value) { chain.links = reader.number(value, 1, k_many); }},
            {"gpu_hours",
             [&](const Node& value) { chain.gpu_hours = reader.number(value, 1, k_many); }},
            {"credentials",
             [&](const Node& value) {
                 chain.credentials = word_in(reader, value, {"hold", "run", "fail"});
             }},
        });
    return chain;
}

IdleRule idle_in(Reader& reader, const Node& node)
{
    IdleRule idle;
    idle.line = node.line;
    reader.map(
        node, "idle",
        {
            {"after", [&](const Node& value) { idle.after = reader.duration(value); }, Need::yes},
            {"warn", [&](const Node& value) { idle.warn = reader.duration(value); }},
            {"start", [&](const Node& value) { idle.start = reader.duration(value); }},
            {"max_per_hour",
             [&](const Node& value) { idle.max_per_hour = reader.number(value, 1, k_many); }},
        });
    if (idle.warn.line == 0) {
        idle.warn.value = std::min<seconds>(k_idle_warning, idle.after.value / 2);
    }
    return idle;
}

ExtendRule extend_in(Reader& reader, const Node& node)
{
    ExtendRule extend;
    extend.line = node.line;
    reader.map(
        node, "extend",
        {
            {"by", [&](const Node& value) { extend.by = reader.walltime(value); }, Need::yes},
            {"times", [&](const Node& value) { extend.times = reader.number(value, 1, k_many); }},
            {"if",
             [&](const Node& value) {
                 extend.unless_others_wait = word_in(reader, value, {"nobody_waits"});
             }},
        });
    return extend;
}

void per_gpu_in(Reader& reader, Queue& queue, const Node& node)
{
    reader.map(
        node, "per_gpu",
        {
            {"cpus",
             [&](const Node& value) { queue.cpus_per_gpu = reader.number(value, 1, 4096); }},
            {"memory", [&](const Node& value) { queue.memory_per_gpu_mib = reader.memory(value); }},
        });
}

CalendarEntry entry_in(Reader& reader, const Node& node)
{
    CalendarEntry entry;
    entry.line = node.line;
    reader.map(
        node, "an entry of the calendar",
        {
            {"when", [&](const Node& value) { entry.when = when_in(reader, value); }, Need::yes},
            {"time", [&](const Node& value) { entry.max_time = reader.walltime(value); }},
            {"default_time",
             [&](const Node& value) { entry.default_time = reader.walltime(value); }},
            {"limits", [&](const Node& value) { entry.limits = limits_in(reader, value); }},
        });
    if (!entry.max_time && !entry.default_time && entry.limits == Limits{}) {
        reader.note(node, "missing",
                    "an entry of the calendar needs one of 'time', 'default_time' and 'limits'");
    }
    return entry;
}

void calendar_in(Reader& reader, Queue& queue, const Node& node)
{
    if (node.kind != Node::Kind::list) {
        reader.note(node, "not-a-list",
                    "calendar must be a list: `- {when: {days: sat, from: \"08:00\"}, time: 24h}`");
        return;
    }
    for (const Node& item : node.items) {
        queue.calendar.push_back(entry_in(reader, item));
    }
}

Queue queue_in(Reader& reader, const std::string& name, const Node& place, const Node& node)
{
    Queue queue;
    queue.name = name;
    queue.line = place.line;
    reader.map(
        node, fmt::format("queue {}", name),
        {
            {"time", [&](const Node& value) { queue.max_time = reader.walltime(value); },
             Need::yes},
            {"default_time",
             [&](const Node& value) { queue.default_time = reader.walltime(value); }},
            {"pools", [&](const Node& value) { queue.pools = reader.some_names(value); },
             Need::yes},
            {"overflow", [&](const Node& value) { queue.overflow = reader.some_names(value); }},
            {"models", [&](const Node& value) { queue.models = reader.some_names(value); }},
            {"per_gpu", [&](const Node& value) { per_gpu_in(reader, queue, value); }},
            {"limits", [&](const Node& value) { queue.limits = limits_in(reader, value); }},
            {"allow", [&](const Node& value) { queue.access = access_in(reader, value); }},
            {"wait", [&](const Node& value) { queue.wait = wait_in(reader, value); }},
            {"chain", [&](const Node& value) { queue.chain = chain_in(reader, value); }},
            {"idle", [&](const Node& value) { queue.idle = idle_in(reader, value); }},
            {"extend", [&](const Node& value) { queue.extend = extend_in(reader, value); }},
            {"through",
             [&](const Node& value) {
                 queue.through = word_in(reader, value, {"gpuq", "sweep"});
             }},
            {"calendar", [&](const Node& value) { calendar_in(reader, queue, value); }},
        });
    if (queue.default_time.line == 0) {
        queue.default_time.value = queue.max_time.value;
    }
    return queue;
}

FairShare fair_share_in(Reader& reader, const Node& node)
{
    FairShare fair;
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
                fair.shares.push_back({entry.key, reader.number(entry.value, 1, k_many)});
            }
        }
    };
    reader.map(
        node, "fair_share",
        {
            {"half_life", [&](const Node& value) { fair.half_life = reader.duration(value); }},
            {"shares", shares},
        });
    return fair;
}

/// `2026-11-03T13:00`, as accepted by scontrol(1), which would convert an invalid date to another
/// one.
bool is_local_time(std::string_view text)
{
    if (text.size() != 16 || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
        text[13] != ':') {
        return false;
    }
    const auto in = [&](std::size_t at, std::size_t size, std::uint64_t least, std::uint64_t most) {
        const auto value = whole_number(text.substr(at, size));
        return value && *value >= least && *value <= most;
    };
    if (!in(0, 4, 2000, 2999) || !in(5, 2, 1, 12) || !in(8, 2, 1, 31) || !in(11, 2, 0, 23) ||
        !in(14, 2, 0, 59)) {
        return false;
    }
    const auto number = [&](std::size_t at, std::size_t size) {
        return static_cast<unsigned>(whole_number(text.substr(at, size)).value_or(0));
    };
    return std::chrono::year_month_day(std::chrono::year(static_cast<int>(number(0, 4))),
                                       std::chrono::month(number(5, 2)),
                                       std::chrono::day(number(8, 2)))
        .ok();
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

std::string local_time_in(Reader& reader, const Node& node)
{
    if (node.kind != Node::Kind::text || !is_local_time(node.text)) {
        reader.note(node, "not-a-date",
                    fmt::format("'{}' is not a local time such as 2026-11-03T13:00", node.text));
        return {};
    }
    return node.text;
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
            {"most", [&](const Node& value) { rule.most = reader.number(value, 1, k_many); }},
        });
    if (rule.users.empty() && rule.accounts.empty()) {
        reader.note(node, "missing", "reserve needs 'users' or 'accounts'");
    }
    return rule;
}

void published_names_in(Reader& reader, Publish& publish, const Node& node)
{
    using Use = Publish::Use;
    const std::vector<Node> single{node};
    for (const Node& item : node.kind == Node::Kind::list ? node.items : single) {
        const auto word = word_in(reader, item, {"labs", "accounts", "courses"});
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
             [&](const Node& value) { publish.least_users = reader.number(value, 2, k_many); }},
        });
    return publish;
}

void job_in(Reader& reader, Case& test, const Node& node)
{
    const auto gpus = [&](const Node& value) {
        test.gpus = value.text;
        if (value.text != "0") {
            gpus_in(reader, value);
        }
    };
    reader.map(
        node, "job",
        {
            {"user", [&](const Node& value) { test.user = value.text; }},
            {"account", [&](const Node& value) { test.account = value.text; }},
            {"time", [&](const Node& value) { test.time = reader.walltime(value).value; }},
            {"gpus", gpus},
            {"shares",
             [&](const Node& value) { test.shares = reader.number(value, 1, k_many).value; }},
            {"nodes",
             [&](const Node& value) { test.nodes = reader.number(value, 1, 65536).value; }},
            {"cpus", [&](const Node& value) { test.cpus = reader.number(value, 1, 4096).value; }},
            {"memory", [&](const Node& value) { test.memory_mib = reader.memory(value).value; }},
            {"queue", [&](const Node& value) { test.queue = reader.name(value).value; }},
            {"course", [&](const Node& value) { test.course = reader.name(value).value; }},
            {"through",
             [&](const Node& value) {
                 const std::string word = word_in(reader, value, {"gpuq", "sweep", "sbatch"}).value;
                 test.through = word == "sbatch"  ? Submitter::other
                                : word == "sweep" ? Submitter::sweep
                                                  : Submitter::run;
             }},
        });
}

/// Slurm allows almost any character in a name.
bool is_slurm_text(Reader& reader, const Node& node, std::string_view what)
{
    const bool fine = node.kind == Node::Kind::text && !node.text.empty();
    if (!fine) {
        reader.note(node, "not-a-text", fmt::format("{} must be a text; quote it", what));
    }
    return fine;
}

/// `FIELD: VALUE` lines; an empty value counts as none.
std::map<std::string, std::string> slurm_fields_in(Reader& reader, const Node& node)
{
    std::map<std::string, std::string> fields;
    if (node.kind != Node::Kind::map && node.kind != Node::Kind::nothing) {
        reader.note(node, "not-a-map", "an object of Slurm must be `FIELD: VALUE` lines");
    }
    for (const Node::Entry& entry : node.entries) {
        if (entry.value.kind != Node::Kind::text) {
            reader.note(entry.value, "not-a-text",
                        fmt::format("the value of {} must be a text; quote it", entry.key));
        }
        fields.emplace(entry.key, entry.value.text);
    }
    return fields;
}

/// The objects of one kind; those with a single field are written `NAME: VALUE`.
void slurm_objects_in(Reader& reader, Site& site, const Node& node, SlurmObject::Kind kind,
                      const char* only_field)
{
    site.kinds.insert(kind);
    if (node.kind != Node::Kind::map && node.kind != Node::Kind::nothing) {
        reader.note(node, "not-a-map", "objects of Slurm must be `NAME: ...` lines");
    }
    for (const Node::Entry& entry : node.entries) {
        SlurmObject object{kind, entry.key, {}, entry.key_node.line};
        if (!is_slurm_text(reader, entry.key_node, "a name")) {
            continue;
        }
        if (only_field == nullptr) {
            object.fields = slurm_fields_in(reader, entry.value);
        } else if (entry.value.kind == Node::Kind::text) {
            object.fields.emplace(only_field, entry.value.text);
        } else {
            is_slurm_text(reader, entry.value, fmt::format("the value of {}", entry.key));
        }
        site.objects.push_back(std::move(object));
    }
}

Site site_in(Reader& reader, const Node& node)
{
    using Kind = SlurmObject::Kind;
    Site site;
    site.line = node.line;
    const auto into = [&](Kind kind, const char* only_field = nullptr) {
        return [&reader, &site, kind, only_field](const Node& value) {
            slurm_objects_in(reader, site, value, kind, only_field);
        };
    };
    reader.map(node, "site",
               {
                   {"settings", into(Kind::setting, "value")},
                   {"partitions", into(Kind::partition)},
                   {"qos", into(Kind::qos)},
                   {"access", into(Kind::access)},
                   {"shares", into(Kind::share, "fairshare")},
                   {"limits", into(Kind::limit)},
                   {"reservations", into(Kind::reservation)},
                   {"scripts", into(Kind::script, "version")},
               });
    return site;
}

Case test_in(Reader& reader, const Node& node)
{
    Case test;
    test.line = node.line;
    bool refused = false;
    const auto expect = [&](const Node& value) {
        reader.map(value, "expect",
                   {
                       {"queue", [&](const Node& name) { test.in = reader.name(name).value; }},
                       {"refused",
                        [&](const Node& text) {
                            test.because = reader.text(text).value;
                            refused = true;
                        }},
                   });
        if (test.in.has_value() == refused) {
            reader.note(value, "missing", "expect needs one of 'queue' and 'refused'");
        }
    };
    reader.map(node, "a test",
               {
                   {"name", [&](const Node& value) { test.name = reader.text(value).value; }},
                   {"at", [&](const Node& value) { test.at = local_time_in(reader, value); }},
                   {"job", [&](const Node& value) { job_in(reader, test, value); }, Need::yes},
                   {"expect", expect, Need::yes},
               });
    if (test.name.empty()) {
        test.name = fmt::format("line {}", test.line);
    }
    return test;
}

void tests_in(Reader& reader, Policy& policy, const Node& node)
{
    if (node.kind != Node::Kind::list) {
        reader.note(node, "not-a-list", "tests must be a list: `- {job: ..., expect: ...}`");
        return;
    }
    for (const Node& item : node.items) {
        policy.tests.push_back(test_in(reader, item));
    }
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
    const Need needed = root.find("site") == nullptr ? Need::yes : Need::no;
    reader.map(
        root, "the policy",
        {
            {"version", [&](const Node& node) { version_in(reader, node); }, Need::yes},
            {"gpus", each("gpus", policy.gpus, model)},
            {"pools", each("pools", policy.pools, pool_in), needed},
            {"queues", each("queues", policy.queues, queue_in), needed},
            {"default_queue", [&](const Node& node) { policy.default_queue = reader.name(node); }},
            {"fair_share",
             [&](const Node& node) { policy.fair_share = fair_share_in(reader, node); }},
            {"courses", each("courses", policy.courses, course_in)},
            {"reserve", [&](const Node& node) { policy.reserve = reserve_in(reader, node); }},
            {"publish", [&](const Node& node) { policy.publish = publish_in(reader, node); }},
            {"helper", [&](const Node& node) { policy.helper = reader.name(node); }},
            {"site", [&](const Node& node) { policy.site = site_in(reader, node); }},
            {"tests", [&](const Node& node) { tests_in(reader, policy, node); }},
        });
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
