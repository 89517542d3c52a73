// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/apply.h"

#include "fakes/fake_admin.h"
#include "govern/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace gpuq::govern {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = SlurmObject::Kind;

const std::string k_now = "2026-11-22T16:00";

std::string shipped(const std::string& name)
{
    std::ifstream file(std::string(GPUQ_POLICIES_DIR) + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string replaced(std::string text, const std::string& what, const std::string& by)
{
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), by);
}

Candidate made(const std::string& text)
{
    auto candidate = candidate_of(text, "policy.yaml", k_now);
    EXPECT_TRUE(candidate) << (candidate ? "" : candidate.error().text);
    return *candidate;
}

/// A site that meets all requirements of policies/criann.yaml.
fakes::FakeAdmin a_centre()
{
    fakes::FakeAdmin admin;
    for (const char* const name : {"gpu01", "visu1", "visu2", "lab1", "lab2"}) {
        admin.nodes.emplace_back(name);
    }
    for (int i = 2; i <= 14; ++i) {
        admin.nodes.push_back(i < 10 ? "gpu0" + std::to_string(i) : "gpu" + std::to_string(i));
    }
    for (const char* const name : {"visu", "lab", "course-dl", "physics"}) {
        admin.accounts.emplace_back(name);
        admin.shares[name] = {Kind::share, name, {{"fairshare", "1"}}, 0};
    }
    admin.users = {"alice"};
    admin.site_settings = {
        {"AccountingStorageEnforce", "associations,limits,qos,safe"},
        {"AccountingStorageTRES", "cpu,mem,gres/gpu,gres/gpu:k80,gres/gpu:p100,gres/gpu:v100"},
        {"JobSubmitPlugins", "lua"},
        {"PriorityType", "priority/multifactor"},
        {"SchedulerParameters",
         "bf_continue,bf_one_resv_per_job,preempt_youngest_first,bf_window=2880"}};
    admin.settings = admin.site_settings;
    return admin;
}

Result<Applied> apply_to(fakes::FakeAdmin& admin, const std::string& text)
{
    return apply(admin, made(text), k_now, [](const std::string&) {});
}

Result<Applied> go_back(fakes::FakeAdmin& admin)
{
    return rollback(admin, k_now, [](const std::string&) {});
}

std::vector<std::string> program_arguments(const Plan& plan)
{
    std::vector<std::string> arguments;
    for (const Change& change : plan.changes) {
        arguments.push_back(std::string(word(change.kind)) + " " + change.name);
        for (const FieldChange& field : change.fields) {
            arguments.back() += " " + field.name;
        }
    }
    return arguments;
}

std::vector<std::string> drift_of(fakes::FakeAdmin& admin)
{
    const auto found = drift(admin, k_now);
    EXPECT_TRUE(found) << (found ? "" : found.error().text);
    return program_arguments(*found);
}

/// The rules in force, as one comparable value.
struct Rules {
    std::map<std::string, SlurmObject> partitions, qos, access, shares, reservations;
    std::string script, include;
    bool reservations_seen = false;
    bool operator==(const Rules&) const = default;
};
Rules rules_of(fakes::FakeAdmin& admin)
{
    const auto version = admin.loaded_script();
    return {admin.partitions,
            admin.qos,
            admin.access,
            admin.shares,
            admin.reservations,
            version->value_or(""),
            admin.files["policy.conf"],
            admin.reservations_seen};
}

const std::string k_old = shipped("criann.yaml");
/// Some limits tighter, some looser, another account for queue lab, a longer course.
const std::string k_new = [] {
    std::string text = k_old;
    text = replaced(text, "        queued: 20 ", "        queued: 10 ");
    text = replaced(text, "soft_gpus: 2", "soft_gpus: 3");
    text = replaced(text, "      user: {gpus: 16, queued: 200}",
                    "      user: {gpus: 24, queued: 100}");
    text = replaced(text, "      accounts: lab\n", "      accounts: physics\n");
    text = replaced(text, "    duration: 4h\n", "    duration: 5h\n");
    return replaced(text, "    lab: 20\n", "    lab: 10\n");
}();

TEST(Apply, PutsAPolicyInForceAndThenHasNothingToDo)
{
    auto admin = a_centre();
    const auto applied = apply_to(admin, k_old);
    ASSERT_TRUE(applied) << applied.error().text;
    EXPECT_GT(applied->changes.size(), 20U);
    EXPECT_THAT(drift_of(admin), IsEmpty());
    const int changes = admin.changes;
    ASSERT_TRUE(apply_to(admin, k_old));
    for (auto log = admin.log.begin() + changes; log != admin.log.end(); ++log) {
        EXPECT_THAT(*log, testing::StartsWith("erase ")) << "a second time changes nothing";
    }
}

TEST(Apply, AValueThatSlurmDoesNotShowIsTheDefault)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, replaced(k_old, "grace: 5m", "grace: 0s")));
    EXPECT_THAT(drift_of(admin), IsEmpty());

    admin = a_centre();
    std::string text = "version: 1\npools:\n";
    std::vector<std::string> overflow;
    for (int i = 1; i <= 11; ++i) {
        text += fmt::format("  p{0}: {{nodes: gpu{0:02}, gpus: 4}}\n", i);
        if (i > 1) {
            overflow.push_back(fmt::format("p{}", i));
        }
    }
    text += fmt::format("queues: {{gpu: {{time: 24h, pools: p1, overflow: [{}]}}}}\n",
                        fmt::join(overflow, ", "));
    const auto applied = apply_to(admin, text);
    ASSERT_TRUE(applied) << applied.error().text; // the last one is in tier 1
    EXPECT_THAT(drift_of(admin), IsEmpty());
    admin.partitions.at("gpu-p11").fields["PriorityTier"] = "2";
    EXPECT_THAT(drift_of(admin), ElementsAre("partition gpu-p11 PriorityTier"));
}

TEST(Apply, HasTheConfigurationReadOnceWherePartitionsStay)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    const auto readings = [&] {
        return std::count(admin.log.begin(), admin.log.end(), "reconfigure");
    };
    const auto before = readings();
    ASSERT_TRUE(apply_to(admin, replaced(k_old, "        queued: 20 ", "        queued: 10 ")));
    EXPECT_EQ(readings(), before + 1);
}

TEST(Apply, HasTheConfigurationReadAfterNewAccessWhereSlurmNeedsIt)
{
    for (const auto& [release, needs] : {std::pair{"22.05.8", false}, std::pair{"24.11.5", true}}) {
        auto admin = a_centre();
        admin.release = release;
        ASSERT_TRUE(apply_to(admin, k_old));
        const auto last = [&](const std::string& what) {
            return std::find_if(admin.log.rbegin(), admin.log.rend(),
                                [&](const std::string& line) {
                                    return line.find(what) != std::string::npos;
                                }) -
                   admin.log.rbegin();
        };
        EXPECT_LT(last(" access "), admin.log.size()) << "access was set";
        EXPECT_EQ(last("reconfigure") < last(" access "), needs) << release;
    }
}

TEST(Apply, HasTheScriptLoadedAgainWhenItsCoursesAreThere)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    ASSERT_FALSE(admin.reservations.empty());
    EXPECT_TRUE(admin.reservations_seen);
}

TEST(Apply, TellsEveryObstacleAndTouchesNothing)
{
    auto admin = a_centre();
    admin.files["slurm.conf"] = "PartitionName=long Nodes=ALL\n";
    admin.files["job_submit.lua"] = "-- the site's\n";
    admin.settings["JobSubmitPlugins"] = "";
    admin.settings["PriorityType"] = "priority/basic";
    admin.accounts = {"root"};
    admin.nodes.pop_back();
    const auto refused = apply_to(admin, k_old);
    ASSERT_FALSE(refused);
    for (const char* const part :
         {"include /etc/slurm/gpuq/policy.conf", "slurm.conf:1: partition long",
          "JobSubmitPlugins needs lua",
          "PriorityType must be priority/multifactor (it is now: priority/basic)", "no account lab",
          "no node gpu14"}) {
        EXPECT_THAT(refused.error().text, HasSubstr(part));
    }
    EXPECT_EQ(admin.changes, 0);
}

TEST(Apply, APartitionMadeByHandOnThePolicysNodesIsFoundAndGoes)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.partitions["backdoor"] = {Kind::partition, "backdoor", {{"Nodes", "gpu02"}}, 0};
    const auto found = drift(admin, k_now);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->changes.size(), 1U);
    EXPECT_EQ(found->changes[0].name, "backdoor");
    EXPECT_EQ(found->changes[0].action, Change::Action::remove);
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_FALSE(admin.partitions.contains("backdoor"));
    EXPECT_TRUE(drift(admin, k_now)->changes.empty());
}

TEST(Apply, AProbeNeedsSomebodyToAskIt)
{
    const std::string probed =
        replaced(k_old, "grace: 5m", "probe: /usr/local/sbin/is-idle\n      grace: 5m");
    auto admin = a_centre();
    admin.settings["HealthCheckProgram"] = "(null)";
    admin.settings["HealthCheckInterval"] = "0 sec";
    const auto refused = apply_to(admin, probed);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("HealthCheckProgram must be set"));
    EXPECT_THAT(refused.error().text, HasSubstr("HealthCheckInterval must be set"));
    EXPECT_EQ(admin.changes, 0);

    admin.site_settings["HealthCheckProgram"] = "/usr/sbin/nhc"; // which calls gpuq-node-probe
    admin.site_settings["HealthCheckInterval"] = "60 sec";
    admin.settings = admin.site_settings;
    EXPECT_TRUE(apply_to(admin, probed));
}

TEST(Apply, RecordsEachChangeAndTheOutcome)
{
    fakes::FakeAdmin admin = a_centre();
    ASSERT_TRUE(apply_to(admin, shipped("criann.yaml")));
    EXPECT_THAT(admin.audit.front(), HasSubstr(" changes"));
    EXPECT_EQ(admin.audit.back(), "in force");
    admin.audit.clear();
    ASSERT_TRUE(apply_to(admin, shipped("criann.yaml")));
    EXPECT_THAT(admin.audit, IsEmpty()); // nothing was changed
    ASSERT_TRUE(apply_to(admin, replaced(shipped("criann.yaml"), "time: 48h", "time: 47h")));
    EXPECT_THAT(admin.audit, Contains(testing::ContainsRegex("modify [a-z]+ .*; .* -> ")));
}

TEST(Apply, TouchesNothingWhenTheRehearsalFails)
{
    auto admin = a_centre();
    admin.rehearsal_fails = true;
    ASSERT_FALSE(apply_to(admin, k_old));
    EXPECT_EQ(admin.changes, 0);
}

TEST(Apply, RefusesAPolicyWithErrors)
{
    EXPECT_FALSE(candidate_of("version: 1\nqeues: {}\n", "p", k_now));
}

const std::string k_sites_script = "function slurm_job_submit(job) return slurm.SUCCESS end\n";

/// The `site` of a policy without queues.
const std::string k_adopted = "version: 1\n"
                              "site:\n"
                              "  settings: {PriorityType: priority/multifactor}\n"
                              "  partitions: {old: {Nodes: 'gpu[01-02]', MaxTime: '60'}}\n"
                              "  qos: {normal: {MaxTRESPU: gres/gpu=2}}\n"
                              "  access: {normal: {accounts: root}}\n"
                              "  shares: {lab: '7'}\n"
                              "  limits: {lab: {MaxJobs: '3'}}\n"
                              "  reservations: {}\n";

/// A site with objects of its own, as described above.
fakes::FakeAdmin an_adopted_site()
{
    auto admin = a_centre();
    admin.files["job_submit.lua"] = k_sites_script;
    admin.partitions["old"] = {
        Kind::partition, "old", {{"Nodes", "gpu01,gpu02"}, {"MaxTime", "60"}}, 0};
    admin.qos["normal"] = {Kind::qos, "normal", {{"MaxTRESPU", "gres/gpu=2"}}, 0};
    admin.access["normal"] = {
        Kind::access, "normal", {{"accounts", "root"}, {"users", "ada,ben"}}, 0};
    admin.shares["lab"].fields["fairshare"] = "7";
    admin.limits = {{"lab", "MaxJobs=3"}};
    return admin;
}

std::vector<std::string> site_of(const Plan& plan)
{
    Plan others;
    others.changes = plan.site;
    return program_arguments(others);
}

TEST(Site, WhatItDescribesNeedsNoChange)
{
    auto admin = an_adopted_site();
    const auto found = plan(admin, made(k_adopted), k_now);
    ASSERT_TRUE(found);
    EXPECT_THAT(program_arguments(*found), IsEmpty());
    EXPECT_THAT(site_of(*found), IsEmpty());
    EXPECT_THAT(found->obstacles, IsEmpty());
    EXPECT_THAT(found->notes, IsEmpty());
}

TEST(Site, EveryDifferenceIsReportedAndNoneRemoved)
{
    auto admin = an_adopted_site();
    ASSERT_TRUE(apply_to(admin, k_adopted));
    const auto changes_so_far = admin.changes;
    admin.settings["PriorityType"] = "priority/basic";
    admin.partitions["old"].fields["MaxTime"] = "120";
    admin.partitions["new"] = {Kind::partition, "new", {{"Nodes", "gpu03"}}, 0};
    admin.qos.erase("normal");
    admin.access["normal"].fields["accounts"] = "lab";
    admin.shares["lab"].fields["fairshare"] = "1";
    admin.shares["visu"].fields["fairshare"] = "5";
    admin.limits = {{"lab", "MaxJobs=4"}, {"visu", "MaxJobs=1"}};
    admin.reservations["maint"] = {Kind::reservation, "maint", {{"Nodes", "gpu01"}}, 0};
    const auto found = drift(admin, k_now);
    ASSERT_TRUE(found);
    EXPECT_THAT(site_of(*found),
                ElementsAre("setting PriorityType value", "partition new", "partition old MaxTime",
                            "qos normal MaxTRESPU", "access normal accounts", "share lab fairshare",
                            "share visu", "limit lab MaxJobs", "limit visu", "reservation maint"));
    EXPECT_THAT(program_arguments(*found), IsEmpty());
    ASSERT_TRUE(apply_to(admin, k_adopted));
    EXPECT_EQ(admin.changes - changes_so_far, 3) << "only the removal of the journal's files";
}

TEST(Site, AReservationThatIsOverAndTheNextOneOfASeriesAreNoDifferences)
{
    auto admin = an_adopted_site();
    const std::string text =
        replaced(k_adopted, "reservations: {}",
                 "reservations:\n"
                 "    over: {StartTime: '2026-11-20T10:00:00', Duration: '60'}\n"
                 "    odd: {StartTime: tomorrow, Duration: soon}\n"
                 "    series: {StartTime: '2026-11-09T10:00:00', Duration: '60', Flags: WEEKLY}");
    admin.reservations["series"] = {
        Kind::reservation,
        "series",
        {{"StartTime", "2026-11-23T10:00:00"}, {"Duration", "60"}, {"Flags", "WEEKLY"}},
        0};
    EXPECT_THAT(site_of(*plan(admin, made(text), k_now)),
                ElementsAre("reservation odd Duration StartTime"));
}

TEST(Site, ThePolicysOwnObjectsAreNotTheSites)
{
    auto admin = an_adopted_site();
    admin.partitions.erase("old");
    const std::string text =
        replaced(k_old, "version: 1\n", "version: 1\nsite: {partitions: {}, qos: {normal: {}}}\n");
    admin.qos["normal"].fields.clear();
    ASSERT_TRUE(apply_to(admin, text)) << apply_to(admin, text).error().text;
    EXPECT_THAT(site_of(*drift(admin, k_now)), IsEmpty());
}

TEST(SiteScript, IsCalledByThePolicysAndPutBackByRollback)
{
    auto admin = an_adopted_site();
    admin.partitions.erase("old");
    ASSERT_TRUE(apply_to(admin, "version: 1\nsite: {}\n"));
    EXPECT_EQ(admin.files["job_submit.lua"], k_sites_script);
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_THAT(admin.files["job_submit.lua"], HasSubstr("P.site = [[\n" + k_sites_script + "]]"));
    EXPECT_EQ(admin.files["site.lua"], k_sites_script);
    EXPECT_THAT(drift_of(admin), IsEmpty());

    // The copy is the one to edit.
    admin.files["site.lua"] += "-- more\n";
    EXPECT_THAT(drift_of(admin), ElementsAre("script job_submit.lua version"));
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_THAT(admin.files["job_submit.lua"], HasSubstr("-- more"));

    ASSERT_TRUE(go_back(admin));
    EXPECT_EQ(admin.files["job_submit.lua"], k_sites_script + "-- more\n");
    EXPECT_FALSE(admin.files.contains("site.lua"));
    EXPECT_THAT(admin.files["policy.conf"], testing::StartsWith("#")) << "slurm.conf includes it";
    EXPECT_TRUE(admin.partitions.empty());
    EXPECT_EQ(admin.qos.size(), 1U);
    EXPECT_THAT(drift_of(admin), IsEmpty());
}

TEST(Site, ItsSharesArePutBackByRollback)
{
    auto admin = an_adopted_site();
    admin.partitions.erase("old");
    admin.shares["course-dl"].fields["fairshare"] = "4";
    ASSERT_TRUE(apply_to(admin, "version: 1\nsite: {shares: {lab: '7', course-dl: '4'}}\n"));
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_NE(admin.shares["lab"].fields["fairshare"], "7");
    EXPECT_EQ(admin.shares["course-dl"].fields["fairshare"], "1");
    ASSERT_TRUE(go_back(admin));
    EXPECT_EQ(admin.shares["lab"].fields["fairshare"], "7");
    EXPECT_EQ(admin.shares["course-dl"].fields["fairshare"], "4");
    EXPECT_EQ(admin.shares["visu"].fields["fairshare"], "1");
    EXPECT_THAT(drift_of(admin), IsEmpty());
    EXPECT_THAT(site_of(*drift(admin, k_now)), IsEmpty());
}

TEST(SiteScript, OneThatIsInstalledAgainIsTheNewOne)
{
    auto admin = an_adopted_site();
    admin.partitions.erase("old");
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.files["job_submit.lua"] = "-- newer\n";
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_EQ(admin.files["site.lua"], "-- newer\n");
    EXPECT_THAT(admin.files["job_submit.lua"], HasSubstr("-- newer\n"));
}

TEST(SiteScript, SurvivesACrashAtAnyPoint)
{
    for (int at = 0; at < 60; ++at) {
        auto admin = an_adopted_site();
        admin.partitions.erase("old");
        ASSERT_TRUE(apply_to(admin, "version: 1\nsite: {}\n"));
        admin.killed_at = admin.changes + at;
        bool killed = false;
        try {
            (void)apply_to(admin, k_old);
        } catch (const fakes::Killed&) {
            killed = true;
        }
        admin.killed_at = -1;
        const bool begun = admin.files.contains("journal") || admin.files.contains("previous.yaml");
        EXPECT_EQ(go_back(admin).has_value(), begun) << at;
        if (admin.files["applied.yaml"].find("queues:") != std::string::npos) {
            ASSERT_TRUE(go_back(admin)) << "the crash was after the last step";
        }
        EXPECT_TRUE(admin.files["job_submit.lua"] == k_sites_script) << at;
        if (!killed) {
            return;
        }
    }
    FAIL() << "apply makes more changes than expected";
}

TEST(SiteScript, ASecretScriptIsNotPublished)
{
    auto admin = an_adopted_site();
    admin.partitions.erase("old");
    admin.touched["job_submit.lua"] = {"root", 0640};
    const auto refused = apply_to(admin, k_old);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("not readable by all users"));
    admin.touched["job_submit.lua"] = {"root", 0644};
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.touched["site.lua"] = {"ada", 0666};
    const auto forged = apply_to(admin, k_old);
    ASSERT_FALSE(forged);
    EXPECT_THAT(forged.error().text, HasSubstr("others could write the copy"));
}

/// At each moment, no limit is looser than the looser one of the two policies.
class NeverLooser : public testing::Test {
protected:
    fakes::FakeAdmin m_admin = a_centre();
    Candidate m_old = made(k_old);
    Candidate m_new = made(k_new);

    static double limit(const std::vector<SlurmObject>& objects, const std::string& qos,
                        const std::string& field)
    {
        const SlurmObject* const found = find(objects, Kind::qos, qos);
        if (found == nullptr || !found->fields.contains(field)) {
            return 1e9;
        }
        const std::string& value = found->fields.at(field);
        const auto number = as_number(value);
        return number ? static_cast<double>(*number) : as_amounts(value).at("gres/gpu");
    }

    void read_state()
    {
        std::vector<SlurmObject> now;
        for (const auto& [name, object] : m_admin.qos) {
            now.push_back(object);
        }
        for (const auto& [qos, field] : std::vector<std::pair<std::string, std::string>>{
                 {"gpuq_calibration", "MaxSubmitPU"},
                 {"gpuq_calibration_soft", "MaxTRESPU"},
                 {"gpuq_long", "MaxTRESPU"},
                 {"gpuq_long", "MaxSubmitPU"}}) {
            EXPECT_LE(limit(now, qos, field),
                      std::max(limit(m_old.objects, qos, field), limit(m_new.objects, qos, field)))
                << qos << " " << field;
        }
        // Access to the laboratory's queue: lab in the old policy, physics in the new one, never
        // both.
        EXPECT_NE(m_admin.access["gpuq_lab"].fields["accounts"], "lab,physics");
    }
};

TEST_F(NeverLooser, ThanBothPolicies)
{
    ASSERT_TRUE(apply_to(m_admin, k_old));
    m_admin.watched = [this] { read_state(); };
    ASSERT_TRUE(apply_to(m_admin, k_new));
    ASSERT_TRUE(go_back(m_admin));
}

TEST_F(NeverLooser, TheScriptIsExchangedWhileTheTightestOfBothHolds)
{
    ASSERT_TRUE(apply_to(m_admin, k_old));
    bool exchanged = false; // the script is written a second time at the end
    m_admin.watched = [&] {
        if (m_admin.log.back() == "write job_submit.lua" && !std::exchange(exchanged, true)) {
            EXPECT_EQ(m_admin.qos["gpuq_calibration"].fields["MaxSubmitPU"], "10"); // the new limit
            EXPECT_EQ(m_admin.qos["gpuq_calibration_soft"].fields["MaxTRESPU"], "gres/gpu=2");
            EXPECT_EQ(m_admin.access["gpuq_lab"].fields["accounts"], "");
        }
    };
    ASSERT_TRUE(apply_to(m_admin, k_new));
    EXPECT_TRUE(exchanged);
}

TEST(Apply, GoesOnAfterACrashAtAnyPoint)
{
    auto reference = a_centre();
    ASSERT_TRUE(apply_to(reference, k_old));
    const int first = reference.changes;
    ASSERT_TRUE(apply_to(reference, k_new));
    const int steps = reference.changes - first;
    ASSERT_GT(steps, 15);
    const Rules desired = rules_of(reference);
    for (int step = 0; step < steps; ++step) {
        auto admin = a_centre();
        ASSERT_TRUE(apply_to(admin, k_old));
        admin.killed_at = admin.changes + step;
        EXPECT_THROW((void)apply_to(admin, k_new), fakes::Killed) << step;
        const auto again = apply_to(admin, k_new);
        ASSERT_TRUE(again) << step << again.error().text;
        EXPECT_TRUE(rules_of(admin) == desired) << step;
        EXPECT_FALSE(admin.files.contains(k_journal)) << step;
        // Rollback still restores the previous policy.
        ASSERT_TRUE(go_back(admin)) << step;
        EXPECT_THAT(admin.files[k_applied], HasSubstr("queued: 20 ")) << step;
    }
}

TEST(Apply, GoesBackAfterACrashAtAnyPoint)
{
    auto reference = a_centre();
    ASSERT_TRUE(apply_to(reference, k_old));
    const Rules desired = rules_of(reference);
    const int first = reference.changes;
    ASSERT_TRUE(apply_to(reference, k_new));
    const int steps = reference.changes - first;
    for (int step = 1; step < steps; ++step) {
        auto admin = a_centre();
        ASSERT_TRUE(apply_to(admin, k_old));
        admin.killed_at = admin.changes + step;
        EXPECT_THROW((void)apply_to(admin, k_new), fakes::Killed);
        const bool is_committed = admin.files[k_applied].find("queued: 10 ") != std::string::npos;
        if (!admin.files.contains(k_journal) && !is_committed) {
            continue; // nothing to roll back
        }
        const auto back = go_back(admin);
        ASSERT_TRUE(back) << step << back.error().text;
        EXPECT_TRUE(rules_of(admin) == desired) << step;
        EXPECT_EQ(admin.files[k_applied], reference.files[k_previous]) << step;
    }
}

TEST(Apply, PutsBackWhatWasThereWhenSlurmRefuses)
{
    auto reference = a_centre();
    ASSERT_TRUE(apply_to(reference, k_old));
    const int first = reference.changes;
    const Rules before = rules_of(reference);
    ASSERT_TRUE(apply_to(reference, k_new));
    const auto commit =
        std::find(reference.log.rbegin(), reference.log.rend(), "write " + std::string(k_previous));
    const auto after_commit = commit - reference.log.rbegin() + 1;
    for (int step = 3; step < reference.changes - first - after_commit; ++step) {
        auto admin = a_centre();
        ASSERT_TRUE(apply_to(admin, k_old));
        admin.refuses_at = admin.changes + step;
        const auto refused = apply_to(admin, k_new);
        ASSERT_FALSE(refused) << step;
        EXPECT_THAT(refused.error().text, HasSubstr("the previous state is restored")) << step;
        EXPECT_EQ(admin.audit.back(), "failed: " + refused.error().text) << step;
        EXPECT_TRUE(rules_of(admin) == before)
            << fmt::format("{}: {}", step, fmt::join(admin.log, "; "));
        EXPECT_THAT(drift_of(admin), IsEmpty()) << step;
    }
}

TEST(Apply, PutsBackTheSharesOfAccountsThatThePolicyDoesNotName)
{
    const auto uneven = [] {
        auto admin = a_centre();
        admin.shares["physics"].fields["fairshare"] = "7";
        return admin;
    };
    auto reference = uneven();
    ASSERT_TRUE(apply_to(reference, k_old));
    ASSERT_EQ(reference.shares["physics"].fields["fairshare"], "1");
    int restored = 0;
    for (int step = 3; step < reference.changes; ++step) {
        auto admin = uneven();
        admin.refuses_at = step;
        const auto refused = apply_to(admin, k_old);
        if (!refused && refused.error().text.find("is restored") != std::string::npos) {
            EXPECT_EQ(admin.shares["physics"].fields["fairshare"], "7") << step;
            ++restored;
        }
    }
    EXPECT_GT(restored, 10);
}

TEST(Apply, BringsADeadControllerBackOnTheOldFiles)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    const Rules before = rules_of(admin);
    admin.dies_at_reconfigure = true;
    const auto refused = apply_to(admin, k_new);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("fails with the new files"));
    EXPECT_TRUE(admin.alive);
    EXPECT_TRUE(rules_of(admin) == before);
}

TEST(Apply, DoesNotBelieveAScriptThatIsNotLoaded)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.loads_scripts = false;
    const auto refused = apply_to(admin, k_new);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("has not loaded"));
}

TEST(Apply, APartitionWithJobsLeavesWhenTheyHaveEnded)
{
    const std::string without = [] {
        std::string text =
            replaced(k_old, "    pools: [calib, visu, lab]", "    pools: [calib, visu]");
        return text;
    }();
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    ASSERT_TRUE(admin.partitions.contains("calibration-lab"));
    // A job runs elsewhere in the queue and was submitted to all of its partitions.
    admin.queue = {{{"calibration"}, "2026-11-22T15:00:00"}};
    const auto applied = apply_to(admin, without);
    ASSERT_TRUE(applied) << applied.error().text;
    EXPECT_THAT(applied->leaving, ElementsAre("calibration-lab", "calibration-lab-more"));
    EXPECT_EQ(admin.partitions["calibration-lab"].fields["State"], "DRAIN");
    EXPECT_THAT(drift_of(admin), IsEmpty());
    // Later jobs were not submitted to the partition, and other queues do not matter.
    admin.queue.push_back({{"calibration"}, "2026-11-22T16:10:00"});
    ASSERT_TRUE(apply_to(admin, without));
    EXPECT_TRUE(admin.partitions.contains("calibration-lab"));
    admin.queue = {{{"calibration"}, "2026-11-22T16:10:00"}, {{"long"}, "2026-11-22T14:00:00"}};
    EXPECT_THAT(drift_of(admin),
                ElementsAre("partition calibration-lab", "partition calibration-lab-more"));
    ASSERT_TRUE(apply_to(admin, without));
    EXPECT_FALSE(admin.partitions.contains("calibration-lab"));
    EXPECT_THAT(drift_of(admin), IsEmpty());
}

TEST(Rollback, IsThePolicyBefore)
{
    auto admin = a_centre();
    EXPECT_FALSE(go_back(admin));
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_FALSE(go_back(admin)) << "there is none before the first";
    const Rules before = rules_of(admin);
    ASSERT_TRUE(apply_to(admin, k_new));
    ASSERT_TRUE(go_back(admin));
    EXPECT_TRUE(rules_of(admin) == before);
    ASSERT_TRUE(go_back(admin)); // and back again
    EXPECT_THAT(admin.files[k_applied], HasSubstr("queued: 10 "));
}

TEST(Apply, OnlyOneAtATime)
{
    auto admin = a_centre();
    const auto hold = admin.hold();
    const auto refused = apply_to(admin, k_old);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Error::Kind::busy);
}

TEST(Plan, RefusesAPartitionOfSlurmConfThatLeadsAroundThePolicy)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.files["slurm.conf"] += "PartitionName=evil Nodes=gpu0[2-3],visu1 PriorityTier=1000\n"
                                 "PartitionName=elsewhere Nodes=login1\n";
    admin.nodes.emplace_back("login1");
    admin.partitions["evil"] = {Kind::partition, "evil", {{"Nodes", "gpu0[2-3],visu1"}}, 0};
    admin.partitions["elsewhere"] = {Kind::partition, "elsewhere", {{"Nodes", "login1"}}, 0};
    const std::string sentence =
        "/etc/slurm/slurm.conf:2: partition evil leads to nodes of the policy (gpu02,gpu03,visu1) "
        "around its rules: remove it, or remove these nodes from it; State=DRAIN lets its jobs end "
        "first";
    const auto found = drift(admin, k_now);
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_THAT(found->obstacles, ElementsAre(sentence));
    EXPECT_THAT(apply_to(admin, k_new).error().text, HasSubstr(sentence));
    for (const auto& [field, value] : {std::pair("State", "DRAIN"), std::pair("RootOnly", "YES"),
                                       std::pair("AllowGroups", "root")}) {
        admin.partitions["evil"].fields[field] = value;
        EXPECT_THAT(drift(admin, k_now)->obstacles, IsEmpty()) << field;
        EXPECT_THAT(
            drift(admin, k_now)->notes,
            ElementsAre("/etc/slurm/slurm.conf:2: partition evil is shut: opened, it would "
                        "lead to nodes of the policy (gpu02,gpu03,visu1) around its rules"));
        admin.partitions["evil"].fields.erase(field);
    }
}

TEST(Plan, RefusesAPartitionOfAnIncludedFileThatLeadsAroundThePolicy)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.files["slurm.conf"] += "Include extra.conf\n";
    admin.files["/etc/slurm/extra.conf"] = "# ours\nPartitionName=evil Nodes=ALL\n";
    admin.partitions["evil"] = {Kind::partition, "evil", {{"Nodes", "gpu02"}}, 0};
    const auto found = drift(admin, k_now);
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_THAT(found->obstacles,
                ElementsAre(testing::StartsWith("/etc/slurm/extra.conf:2: partition evil leads to "
                                                "nodes of the policy (gpu02) around its rules")));
    EXPECT_THAT(found->changes, IsEmpty()) << "no file of gpuq's could take it out";
}

TEST(Plan, FollowsSlurmConfToEveryFileAndSpelling)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.files["slurm.conf"] = "ClusterName=Crihan\nInclude conf.d/%c.conf\n";
    admin.files["/etc/slurm/conf.d/crihan.conf"] =
        "include deeper.conf\ninclude ../gpuq/policy.conf\n";
    admin.files["/etc/slurm/conf.d/deeper.conf"] = "# PartitionName=a # \\\n"
                                                   "PartitionName=one,two \\\n  Nodes=gpu02\n"
                                                   "partitionname = \"evil\" Nodes=gpu02\n"
                                                   "include deeper.conf\n"
                                                   "PriorityFavorSmall=Yes\n";
    for (const char* const name : {"two", "evil"}) {
        admin.partitions[name] = {Kind::partition, name, {{"Nodes", "gpu02"}}, 0};
    }
    const auto found = drift(admin, k_now);
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_THAT(
        found->obstacles,
        ElementsAre(
            testing::StartsWith("/etc/slurm/conf.d/deeper.conf:2: partition two leads to nodes"),
            testing::StartsWith("/etc/slurm/conf.d/deeper.conf:4: partition evil leads to nodes"),
            "/etc/slurm/conf.d/deeper.conf:6: setting PriorityFavorSmall is defined by the policy: "
            "remove it"));
    EXPECT_THAT(found->changes, IsEmpty());
}

TEST(Plan, RefusesFewerThreadsPerCoreThanTheNodesHave)
{
    auto admin = a_centre();
    admin.threads_per_core = {{"gpu01", 2}, {"lab1", 4}, {"lab2", 4}};
    EXPECT_THAT(plan(admin, made(k_old), k_now)->obstacles,
                ElementsAre(testing::HasSubstr("nodes lab1,lab2 have 4 threads per core: add "
                                               "threads_per_core: 4")));
    admin.threads_per_core = {{"gpu01", 1}, {"lab1", 2}};
    const auto fine = plan(admin, made(k_old), k_now);
    EXPECT_THAT(fine->obstacles, IsEmpty());
    EXPECT_THAT(fine->notes, testing::Not(testing::Contains(testing::HasSubstr("threads"))));
    const std::string unstated = replaced(
        k_old, "    threads_per_core: 2         # Slurm CPUs per core; a job gets whole cores\n",
        "");
    EXPECT_THAT(plan(admin, made(unstated), k_now)->notes,
                testing::Contains(testing::HasSubstr("threads_per_core: 1 lets jobs")));
}

TEST(Plan, RefusesPrioritiesThatPassByFairShare)
{
    auto admin = a_centre();
    admin.settings["PriorityFlags"] = "NO_FAIR_TREE,ACCRUE_ALWAYS";
    EXPECT_THAT(plan(admin, made(k_old), k_now)->obstacles,
                ElementsAre("/etc/slurm/slurm.conf: PriorityFlags must not contain NO_FAIR_TREE "
                            "(it is now: NO_FAIR_TREE,ACCRUE_ALWAYS); then restart slurmctld"));
    admin.settings["PriorityFlags"] = "ACCRUE_ALWAYS";
    EXPECT_THAT(plan(admin, made(k_old), k_now)->obstacles, IsEmpty());
}

TEST(Drift, FindsFilesThatOthersMayChangeOrNotRead)
{
    auto admin = a_centre();
    admin.settings["SlurmUser"] = admin.site_settings["SlurmUser"] = "slurm(64030)";
    ASSERT_TRUE(apply_to(admin, k_new));
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.touched = {{"job_submit.lua", {"slurm", 0666}},
                     {"policy.conf", {"root", 0600}},
                     {"applied.yaml", {"ada", 0664}},
                     {"previous.yaml", {"ada", 0644}},
                     {"gpuq", {"ada", 0777}},
                     {"slurm.conf", {"ada", 0600}}};
    const auto found = drift(admin, k_now);
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_THAT(program_arguments(*found),
                ElementsAre("file applied.yaml mode owner", "file gpuq mode owner",
                            "file job_submit.lua mode", "file policy.conf mode",
                            "file previous.yaml owner"));
    EXPECT_EQ(found->changes[0].fields[0], (FieldChange{"mode", "0664", "0644", Effect::neither}));
    EXPECT_EQ(found->changes[0].fields[1],
              (FieldChange{"owner", "ada", "root or slurm", Effect::neither}));
    EXPECT_EQ(found->changes[1].fields[0], (FieldChange{"mode", "0777", "0755", Effect::neither}));
    EXPECT_THAT(go_back(admin).error().text, HasSubstr("others could write previous.yaml"));
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_EQ(admin.touched.size(), 1U) << "slurm.conf is the site's";
    EXPECT_THAT(drift_of(admin), IsEmpty());
}

TEST(Rollback, NeverTakesATextThatOthersCouldWrite)
{
    struct Case {
        const char* file;
        FileRights rights;
        const std::string& next;
        bool is_kept;
    };
    // Applying the same policy keeps previous.yaml; another policy replaces it with applied.yaml.
    for (const auto& [file, rights, next, is_kept] :
         {Case{"previous.yaml", {"root", 0666}, k_old, false},
          Case{"previous.yaml", {"ada", 0644}, k_old, false},
          Case{"previous.yaml", {"root", 0600}, k_old, true},
          Case{"previous.yaml", {"root", 0666}, k_new, true},
          Case{"applied.yaml", {"root", 0664}, k_new, false},
          Case{"applied.yaml", {"root", 0600}, k_new, true},
          Case{"applied.yaml", {"root", 0666}, k_old, true},
          Case{"gpuq", {"root", 0777}, k_old, false}}) {
        auto admin = a_centre();
        ASSERT_TRUE(apply_to(admin, k_new));
        ASSERT_TRUE(apply_to(admin, k_old));
        admin.touched = {{file, rights}};
        ASSERT_TRUE(apply_to(admin, next)) << file;
        EXPECT_THAT(drift_of(admin), IsEmpty()) << file;
        const auto back = go_back(admin);
        EXPECT_EQ(back.has_value(), is_kept) << file << rights.owner << rights.mode;
        if (!is_kept) {
            EXPECT_THAT(back.error().text, HasSubstr("there is no policy before this one"));
        }
    }
}

TEST(Rollback, LooksWhoCouldWriteAlsoWhenThePolicyInForceIsGone)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_new));
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.files.erase("applied.yaml"); // by a user who can write to the directory and added files
    admin.touched = {{"gpuq", {"root", 0777}}};
    EXPECT_THAT(go_back(admin).error().text, HasSubstr("others could write previous.yaml"));
}

TEST(Drift, NotesLimitsOnAccountsAndUsers)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_THAT(drift(admin, k_now)->notes, IsEmpty());
    admin.limits = {{"lab", "GrpTRES=cpu=2"}, {"lab", "GrpTRESMins=gres/gpu=60000"}};
    for (const char* const who : {"ada@lab", "ben@lab", "cleo@lab", "dora@lab", "eva@visu"}) {
        admin.limits.push_back({who, "MaxJobs=7"});
    }
    EXPECT_THAT(
        drift(admin, k_now)->notes,
        ElementsAre("in addition to the policy, Slurm's accounting limits lab by GrpTRES=cpu=2 "
                    "(sacctmgr show assoc)",
                    "in addition to the policy, Slurm's accounting limits lab by "
                    "GrpTRESMins=gres/gpu=60000 (sacctmgr show assoc)",
                    "in addition to the policy, Slurm's accounting limits ada@lab, ben@lab, "
                    "cleo@lab and 2 more by MaxJobs=7 (sacctmgr show assoc)"));
    EXPECT_THAT(drift_of(admin), IsEmpty());
}

TEST(Drift, FindsLimitsOfGpusOnAccountsAndUsers)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    const std::vector<AssociationLimit> by_hand{{"ada@lab", "MaxTRES=gres/gpu:p100=1"},
                                                {"lab", "GrpTRES=cpu=8,gres/gpu=2"}};
    admin.limits = by_hand;
    EXPECT_THAT(drift_of(admin), ElementsAre("limit ada@lab MaxTRES", "limit lab GrpTRES"));
    EXPECT_THAT(drift(admin, k_now)->notes, IsEmpty());
    const FieldChange change{"GrpTRES", "gres/gpu=2", std::nullopt, Effect::loosens};
    EXPECT_EQ(drift(admin, k_now)->changes[1].fields[0], change);
    // A failed apply leaves the limits unchanged.
    auto refusing = admin;
    refusing.loads_scripts = false;
    ASSERT_FALSE(apply_to(refusing, k_new));
    EXPECT_EQ(refusing.limits, by_hand);
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_THAT(drift_of(admin), IsEmpty());
}

TEST(Apply, KeepsTheGpuLimitsThatTheFileListsAsTheSites)
{
    auto admin = a_centre();
    const std::vector<AssociationLimit> of_site{{"lab", "GrpTRES=gres/gpu=2"}};
    admin.limits = of_site;
    const std::string adopted = k_old + "\nsite:\n  limits: {lab: {GrpTRES: 'gres/gpu=2'}}\n";
    ASSERT_TRUE(apply_to(admin, adopted));
    EXPECT_EQ(admin.limits, of_site);
    EXPECT_THAT(drift_of(admin), IsEmpty());
    EXPECT_THAT(drift(admin, k_now)->site, IsEmpty());
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_THAT(admin.limits, IsEmpty()) << "the policy alone replaces them";
}

TEST(Drift, LeavesLimitsWhereOtherGpusAreNoneOfThePolicys)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.nodes.emplace_back("others1");
    admin.limits = {{"lab", "GrpTRES=gres/gpu=2"}};
    EXPECT_THAT(drift_of(admin), IsEmpty());
    EXPECT_THAT(drift(admin, k_now)->notes, ElementsAre(HasSubstr("lab by GrpTRES=gres/gpu=2")));
}

TEST(Drift, FindsSharesOfUsers)
{
    auto admin = a_centre();
    admin.shares["ada@lab"] = {Kind::share, "ada@lab", {{"fairshare", "1"}}, 0};
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_THAT(drift_of(admin), IsEmpty());
    admin.shares["ada@lab"].fields["fairshare"] = "100";
    EXPECT_THAT(drift_of(admin), ElementsAre("share ada@lab fairshare"));
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_EQ(admin.shares["ada@lab"].fields["fairshare"], "1");
}

TEST(Drift, LetsAnAccountBeWhosePeopleAllShareAsTheAccountDoes)
{
    auto admin = a_centre();
    const auto share = [&](const std::string& who, const std::string& value) {
        admin.shares[who] = {Kind::share, who, {{"fairshare", value}}, 0};
    };
    share("ada@lab", "parent");
    share("ben@lab", "parent");
    share("cleo@visu", "1");
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_EQ(admin.shares["ada@lab"].fields["fairshare"], "parent");
    EXPECT_THAT(drift_of(admin), IsEmpty());
    share("dora@lab", "1"); // now the other shares differ from the policy too
    EXPECT_THAT(drift_of(admin), ElementsAre("share ada@lab fairshare", "share ben@lab fairshare"));
}

TEST(Drift, FindsWeightsOfThingsBesideThePolicys)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.settings["PriorityWeightTRES"] = "CPU=100000";
    EXPECT_THAT(drift(admin, k_now)->obstacles,
                ElementsAre("/etc/slurm/slurm.conf: PriorityWeightTRES must not be set (it is now: "
                            "CPU=100000): remove it, then scontrol reconfigure"));
    admin.settings["PriorityWeightTRES"] = "";
    EXPECT_THAT(drift(admin, k_now)->obstacles, IsEmpty());
}

TEST(Apply, MakesACourseThatIsOnFromItsNextTimeOn)
{
    auto admin = a_centre();
    const std::string during = "2026-12-14T14:00"; // a Monday; the course begins at 13:00, weekly
    const auto at = [&](const std::string& now) {
        return *candidate_of(k_old, "policy.yaml", now);
    };
    ASSERT_TRUE(apply(admin, at(during), during, [](const std::string&) {}));
    auto& course = admin.reservations.at("deep-learning-2026").fields;
    EXPECT_EQ(course["StartTime"], "2026-12-21T13:00:00");
    for (const std::string& now : {during, std::string("2026-12-17T09:00")}) {
        EXPECT_THAT(program_arguments(*drift(admin, now)), IsEmpty()) << now;
    }
    course["StartTime"] = "2026-12-14T13:00:00"; // as for a reservation from before its begin
    EXPECT_THAT(program_arguments(*drift(admin, during)), IsEmpty());
    course["Duration"] = "60";
    EXPECT_THAT(program_arguments(*drift(admin, during)),
                ElementsAre("reservation deep-learning-2026 Duration"));
    // Recreated in the middle of the course, from that time on.
    course["StartTime"] = "2026-12-14T13:30:17";
    course["Duration"] = "210";
    EXPECT_THAT(program_arguments(*drift(admin, during)), IsEmpty());
    EXPECT_THAT(program_arguments(*drift(admin, "2026-12-14T13:20")),
                ElementsAre("reservation deep-learning-2026 Duration StartTime"))
        << "it has not begun";
}

TEST(Apply, MakesACourseThatIsOnAndNeverAgainFromNowOn)
{
    const std::string once = replaced(k_old, "    repeat: weekly ", "    repeat: once ");
    auto admin = a_centre();
    const auto at = [&](const std::string& now) { return *candidate_of(once, "policy.yaml", now); };
    const std::string during = "2026-12-07T14:30";
    ASSERT_TRUE(apply(admin, at(during), during, [](const std::string&) {}));
    auto& course = admin.reservations.at("deep-learning-2026").fields;
    EXPECT_EQ(course["StartTime"], "2026-12-07T14:30:00");
    EXPECT_EQ(course["Duration"], "150");
    for (const std::string& now : {during, std::string("2026-12-07T16:59")}) {
        EXPECT_THAT(program_arguments(*drift(admin, now)), IsEmpty()) << now;
    }
}

TEST(Drift, FindsSharesOfAccountsThatThePolicyDoesNotName)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    admin.accounts.emplace_back("chemistry");
    admin.shares["chemistry"] = {Kind::share, "chemistry", {{"fairshare", "500"}}, 0};
    EXPECT_THAT(drift_of(admin), ElementsAre("share chemistry fairshare"));
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_EQ(admin.shares["chemistry"].fields["fairshare"], "1");
}

/// Changes every field of every object of a policy by hand, one after the other.
TEST(Drift, FindsEveryChangeOfEveryField)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    int mutations = 0;
    const auto mutate = [&](std::map<std::string, SlurmObject>& objects, const std::string& kind) {
        for (auto& [name, object] : objects) {
            const SlurmObject whole = object;
            for (const auto& [field, value] : whole.fields) {
                for (const bool gone : {false, true}) {
                    if (gone) {
                        object.fields.erase(field);
                    } else {
                        object.fields[field] = field == "Nodes" ? "gpu03" : value + "7";
                    }
                    const bool same = gone && value.empty();
                    if (!same) {
                        EXPECT_THAT(drift_of(admin), ElementsAre(kind + " " + name + " " + field));
                        ++mutations;
                    }
                    object = whole;
                }
            }
            // Fields that the policy does not set; a time is not an amount.
            for (const auto& [field, value] :
                 {std::pair("Hidden", "YES"), std::pair("MaxStartDelay", "00:10:00")}) {
                object.fields[field] = value;
                EXPECT_THAT(drift_of(admin),
                            ElementsAre(fmt::format("{} {} {}", kind, name, field)));
                object = whole;
            }
        }
    };
    mutate(admin.partitions, "partition");
    mutate(admin.qos, "qos");
    mutate(admin.reservations, "reservation");
    for (auto& [name, value] : admin.settings) {
        if (!admin.site_settings.contains(name)) {
            const std::string whole = value;
            value += "7";
            EXPECT_THAT(drift_of(admin), ElementsAre("setting " + name + " value"));
            value = whole;
            ++mutations;
        }
    }
    EXPECT_GT(mutations, 150);
    EXPECT_THAT(drift_of(admin), IsEmpty());
}

TEST(Drift, FindsPeopleSharesAndFiles)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    auto changed = admin;
    changed.access["gpuq_lab"].fields["users"] = "alice";
    EXPECT_THAT(drift_of(changed), ElementsAre("access gpuq_lab users"));
    changed = admin;
    changed.access["gpuq_long"].fields["accounts"] = "";
    EXPECT_THAT(drift_of(changed), ElementsAre("access gpuq_long accounts"));
    changed = admin;
    changed.access["gpuq_long"].fields["without"] = "physics";
    EXPECT_THAT(drift_of(changed), ElementsAre("access gpuq_long without"));
    changed = admin;
    changed.access.erase("gpuq_lab");
    EXPECT_THAT(drift_of(changed), ElementsAre("access gpuq_lab accounts"));
    changed = admin;
    changed.shares["lab"].fields["fairshare"] = "21";
    EXPECT_THAT(drift_of(changed), ElementsAre("share lab fairshare"));
    changed = admin;
    changed.files["policy.conf"] += "\n";
    EXPECT_THAT(drift_of(changed), ElementsAre("file policy.conf text"));
    changed = admin;
    changed.files["job_submit.lua"] += "\n";
    EXPECT_THAT(drift_of(changed), ElementsAre("file job_submit.lua text"));
    changed = admin;
    changed.files["job_submit.lua"] = "";
    EXPECT_THAT(drift_of(changed), Contains("script job_submit.lua version"));
    changed = admin;
    changed.qos["gpuq_mine"] = {Kind::qos, "gpuq_mine", {}, 0};
    EXPECT_THAT(drift_of(changed), ElementsAre("qos gpuq_mine"));
    changed = admin;
    changed.partitions.erase("long");
    EXPECT_THAT(drift_of(changed), ElementsAre(testing::StartsWith("partition long ")));
    changed = admin;
    changed.reservations.clear();
    EXPECT_THAT(drift_of(changed),
                ElementsAre(testing::StartsWith("reservation deep-learning-2026 ")));
}

TEST(Plan, SaysWhatAChangeDoes)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_old));
    const auto found = plan(admin, made(k_new), k_now);
    ASSERT_TRUE(found);
    std::map<std::string, Effect> effects;
    for (const Change& change : found->changes) {
        effects[std::string(word(change.kind)) + " " + change.name] = change.effect;
    }
    EXPECT_EQ(effects, (std::map<std::string, Effect>{
                           {"access gpuq_lab", Effect::both},
                           {"qos gpuq_calibration", Effect::tightens},
                           {"qos gpuq_calibration_soft", Effect::loosens},
                           {"qos gpuq_long", Effect::both},
                           {"reservation deep-learning-2026", Effect::neither},
                           {"script job_submit.lua", Effect::neither},
                           {"share lab", Effect::neither},
                       }));
    EXPECT_EQ(admin.files[k_applied].find("queued: 10 "), std::string::npos);
}

/// k_old, with longer jobs in queue long at night.
const std::string k_nights = replaced(
    k_old, "# the batch\n    time: 48h\n",
    "# the batch\n    time: 48h\n    calendar:\n"
    "      - {when: {from: \"20:00\", to: \"08:00\"}, time: 72h, limits: {user: {queued: 300}}}\n");

Result<Applied> advance_to(fakes::FakeAdmin& admin, const std::string& now)
{
    return advance(admin, now, [](const std::string&) {});
}

std::pair<std::string, std::string> long_queue(const fakes::FakeAdmin& admin)
{
    return {admin.partitions.at("long").fields.at("MaxTime"),
            admin.qos.at("gpuq_long").fields.at("MaxSubmitPU")};
}

TEST(Advance, PutsTheValuesOfTheMomentInForce)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_nights)); // at 16:00
    EXPECT_EQ(long_queue(admin), (std::pair<std::string, std::string>("2880", "200")));
    admin.audit.clear();
    const auto advanced = advance_to(admin, "2026-11-22T20:00");
    ASSERT_TRUE(advanced) << advanced.error().text;
    EXPECT_EQ(long_queue(admin), (std::pair<std::string, std::string>("4320", "300")));
    EXPECT_THAT(admin.audit, Contains(HasSubstr("modify partition long; "
                                                "MaxTime: 2880 -> 4320")));
    EXPECT_EQ(admin.audit.back(), "in force");
    EXPECT_FALSE(admin.files.contains(k_previous)) << "it is the same policy";
    EXPECT_THAT(drift(admin, "2026-11-23T07:59")->changes, IsEmpty());
    ASSERT_TRUE(advance_to(admin, "2026-11-23T08:00"));
    EXPECT_EQ(long_queue(admin), (std::pair<std::string, std::string>("2880", "200")));
}

TEST(Advance, AsksSlurmForNothingWhileNothingIsDue)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_nights));
    const int changes = admin.changes;
    admin.alive = false; // any request would fail
    for (const char* const now : {"2026-11-22T19:59", "2026-11-23T08:00", "2026-11-24T12:00"}) {
        const auto nothing = advance_to(admin, now);
        ASSERT_TRUE(nothing) << nothing.error().text;
        EXPECT_THAT(nothing->changes, IsEmpty());
    }
    EXPECT_EQ(admin.changes, changes);
    EXPECT_FALSE(advance_to(admin, "2026-11-22T20:00"));
    admin.alive = true;
    ASSERT_TRUE(apply_to(admin, k_old));
    EXPECT_FALSE(admin.files.contains(k_calendar)) << "no calendar: nothing to advance";
    admin.alive = false;
    EXPECT_TRUE(advance_to(admin, "2026-11-22T20:00"));
}

TEST(Advance, DriftReportsAnOverdueChange)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_nights));
    EXPECT_THAT(drift(admin, k_now)->notes, testing::Not(Contains(HasSubstr("calendar"))));
    const auto late = drift(admin, "2026-11-22T20:01");
    ASSERT_TRUE(late);
    EXPECT_EQ(late->changes.size(), 3U); // partition, QOS and script
    EXPECT_THAT(late->notes, Contains(HasSubstr("the calendar has changed since the policy was "
                                                "last put in force: `gpuq policy advance`")));
}

TEST(Advance, NeedsAPolicyThatOnlyItsOwnerCouldWrite)
{
    auto admin = a_centre();
    EXPECT_EQ(advance_to(admin, k_now).error().kind, Error::Kind::missing);
    ASSERT_TRUE(apply_to(admin, k_nights));
    admin.touched[k_applied] = {"mallory", 0644};
    const auto refused = advance_to(admin, "2026-11-22T20:00");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("others could write applied.yaml"));
    EXPECT_EQ(long_queue(admin).first, "2880");
}

TEST(Advance, ResumesItselfWhereverItIsKilled)
{
    int kills = 0;
    for (int kill = 0;; ++kill) {
        auto admin = a_centre();
        ASSERT_TRUE(apply_to(admin, k_nights));
        admin.killed_at = admin.changes + kill;
        try {
            ASSERT_TRUE(advance_to(admin, "2026-11-22T20:00"));
            break; // there was nothing left to kill
        } catch (const fakes::Killed&) {
            ++kills;
        }
        admin.killed_at = -1;
        const auto resumed = advance_to(admin, "2026-11-22T20:01");
        ASSERT_TRUE(resumed) << kill << ": " << resumed.error().text;
        EXPECT_EQ(long_queue(admin), (std::pair<std::string, std::string>("4320", "300"))) << kill;
        EXPECT_THAT(drift(admin, "2026-11-22T20:02")->changes, IsEmpty()) << kill;
        EXPECT_FALSE(admin.files.contains(k_journal)) << kill;
        EXPECT_EQ(admin.files.at(k_calendar), "open: long:85\n") << kill;
    }
    EXPECT_GT(kills, 8);
}

TEST(Advance, LeavesAnInterruptedApplyOfAnotherPolicyToItsOperator)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_nights));
    admin.killed_at = admin.changes + 6;
    EXPECT_THROW((void)apply_to(admin, k_new), fakes::Killed);
    admin.killed_at = -1;
    const auto refused = advance_to(admin, "2026-11-22T20:00");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("the apply of another policy was interrupted at"));
    ASSERT_TRUE(apply_to(admin, k_new));
    EXPECT_TRUE(advance_to(admin, "2026-11-22T20:00"));
}

TEST(Advance, OneAtATime)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_nights));
    const auto other = admin.hold();
    EXPECT_EQ(advance_to(admin, "2026-11-22T20:00").error().kind, Error::Kind::busy);
}

TEST(Advance, ReturnsToTheOldStateIfSlurmRefuses)
{
    for (int fault = 0; fault < 12; ++fault) {
        auto admin = a_centre();
        ASSERT_TRUE(apply_to(admin, k_nights));
        const Rules before = rules_of(admin);
        admin.refuses_at = admin.changes + fault;
        const auto done = advance_to(admin, "2026-11-22T20:00");
        admin.refuses_at = -1;
        const Rules after = rules_of(admin);
        EXPECT_TRUE(done || after == before || admin.files.contains(k_journal)) << fault;
        const auto again = advance_to(admin, "2026-11-22T20:01");
        ASSERT_TRUE(again) << fault << ": " << again.error().text;
        EXPECT_EQ(long_queue(admin).first, "4320") << fault;
    }
}

TEST(Advance, PausesLongerAfterEachFailure)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_nights));
    const auto at = [&](int minute) {
        return advance(
            admin, fmt::format("2026-11-22T20:{:02}", minute), [](const std::string&) {},
            Pause::after_failures);
    };
    admin.rehearsal_fails = true;
    std::vector<int> attempts;
    for (int minute = 0; minute < 20; ++minute) {
        admin.audit.clear();
        ASSERT_FALSE(at(minute));
        if (!admin.audit.empty()) {
            attempts.push_back(minute);
        }
    }
    EXPECT_THAT(attempts, ElementsAre(0, 1, 3, 7, 15));
    const auto early = at(20);
    EXPECT_EQ(early.error().kind, Error::Kind::busy);
    EXPECT_THAT(early.error().text,
                HasSubstr("the last attempt failed at 2026-11-22T20:15 (nothing was changed: "
                          "slurmctld does not start): the next one is at 2026-11-22T20:31"));
    EXPECT_THAT(advance_to(admin, "2026-11-22T20:21").error().text,
                testing::StartsWith("nothing was changed"))
        << "without the pause";
    admin.rehearsal_fails = false;
    ASSERT_TRUE(at(19)) << "the clock was set back";
    EXPECT_EQ(long_queue(admin).first, "4320");
    EXPECT_FALSE(admin.files.contains(k_failures));
}

/// k_old, whose laboratory lends its nodes at night.
const std::string k_lent_at_night =
    replaced(k_old, "grace: 5m", "when: {from: \"20:00\", to: \"08:00\"}\n      grace: 5m");

TEST(Advance, ClosesAPoolThatIsLentNoMoreAndGivesItsGuestsNotice)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_lent_at_night)); // at 16:00
    const auto state = [&] { return admin.partitions.at("calibration-visu").fields["State"]; };
    EXPECT_EQ(state(), "DOWN");
    ASSERT_TRUE(advance_to(admin, "2026-11-22T20:00"));
    EXPECT_EQ(state(), "");
    using namespace std::chrono_literals;
    admin.running = {{"1", {"calibration-visu", 2h}},
                     {"2", {"calibration-visu", 4min}},
                     {"3", {"calibration", 2h}},
                     {"4", {"visu", 2h}}};
    admin.audit.clear();
    ASSERT_TRUE(advance_to(admin, "2026-11-23T07:54"));
    EXPECT_EQ(admin.running["1"].left, 2h);
    ASSERT_TRUE(advance_to(admin, "2026-11-23T07:55"));
    EXPECT_EQ(state(), "DOWN");
    EXPECT_EQ(admin.running["1"].left, 5min);
    EXPECT_EQ(admin.running["2"].left, 4min);
    EXPECT_EQ(admin.running["3"].left, 2h);
    EXPECT_EQ(admin.running["4"].left, 2h);
    EXPECT_THAT(admin.audit, Contains("the hours of their pool end: jobs 1 have notice"));
    EXPECT_THAT(drift(admin, "2026-11-23T07:55")->changes, IsEmpty());
}

TEST(Advance, GivesNoticeEvenIfItIsKilledBefore)
{
    using namespace std::chrono_literals;
    int kills = 0;
    for (int kill = 0;; ++kill) {
        auto admin = a_centre();
        ASSERT_TRUE(apply_to(admin, k_lent_at_night));
        ASSERT_TRUE(advance_to(admin, "2026-11-22T20:00"));
        admin.running = {{"1", {"calibration-visu", 2h}}, {"2", {"calibration-visu", 2h}}};
        admin.killed_at = admin.changes + kill;
        try {
            ASSERT_TRUE(advance_to(admin, "2026-11-23T07:55"));
            break;
        } catch (const fakes::Killed&) {
            ++kills;
        }
        admin.killed_at = -1;
        ASSERT_TRUE(advance_to(admin, "2026-11-23T07:56")) << kill;
        EXPECT_EQ(admin.running["1"].left, 5min) << kill;
        EXPECT_EQ(admin.running["2"].left, 5min) << kill;
    }
    EXPECT_GT(kills, 8);
}

/// The laboratory's nodes are lent only at night, too.
const std::string k_both_lent_at_night = replaced(
    k_lent_at_night, "grace: 10m", "when: {from: \"20:00\", to: \"08:00\"}\n      grace: 10m");

TEST(Apply, GivesNoticeWhereItClosesAPoolWhileTheSameHoursAreOpen)
{
    using namespace std::chrono_literals;
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_lent_at_night)); // at 16:00
    admin.running = {{"1", {"calibration-lab", 2h}}, {"2", {"calibration-visu", 2h}}};
    ASSERT_TRUE(apply_to(admin, k_both_lent_at_night));
    EXPECT_EQ(admin.running["1"].left, 10min);
    EXPECT_EQ(admin.running["2"].left, 2h) << "closed before: an operator has extended it";
}

TEST(Apply, GivesThatNoticeEvenIfItIsKilledBefore)
{
    using namespace std::chrono_literals;
    int kills = 0;
    for (int kill = 0;; ++kill) {
        auto admin = a_centre();
        ASSERT_TRUE(apply_to(admin, k_lent_at_night));
        admin.running = {{"1", {"calibration-lab", 2h}}};
        admin.killed_at = admin.changes + kill;
        try {
            ASSERT_TRUE(apply_to(admin, k_both_lent_at_night));
            break;
        } catch (const fakes::Killed&) {
            ++kills;
        }
        admin.killed_at = -1;
        ASSERT_TRUE(apply_to(admin, k_both_lent_at_night)) << kill;
        EXPECT_EQ(admin.running["1"].left, 10min) << kill;
    }
    EXPECT_GT(kills, 8);
}

TEST(Rollback, RevertsAnApplyThatCouldGiveNoNotice)
{
    using namespace std::chrono_literals;
    const auto with_guest = [] {
        auto admin = a_centre();
        EXPECT_TRUE(apply_to(admin, k_old));
        admin.running = {{"1", {"calibration-visu", 2h}}};
        return admin;
    };
    auto reference = with_guest();
    const Rules before = rules_of(reference);
    ASSERT_TRUE(apply_to(reference, k_lent_at_night));
    const auto notice = std::find(reference.log.begin(), reference.log.end(), "limit job 1");
    ASSERT_NE(notice, reference.log.end());

    auto admin = with_guest();
    admin.refuses_at = static_cast<int>(std::count_if(
        reference.log.begin(), notice, [](const std::string& line) { return line != "rehearse"; }));
    EXPECT_THAT(apply_to(admin, k_lent_at_night).error().text, HasSubstr("limit job 1"));
    admin.refuses_at = -1;
    ASSERT_TRUE(go_back(admin));
    EXPECT_TRUE(rules_of(admin) == before);
    EXPECT_FALSE(admin.files.contains(k_journal));
}

TEST(Rollback, ReturnsToThePreviousPolicyAsItIsAtThisTime)
{
    auto admin = a_centre();
    ASSERT_TRUE(apply_to(admin, k_nights));
    ASSERT_TRUE(apply_to(admin, k_new));
    ASSERT_TRUE(rollback(admin, "2026-11-22T21:00", [](const std::string&) {}));
    EXPECT_EQ(long_queue(admin).first, "4320");
    ASSERT_TRUE(advance_to(admin, "2026-11-23T08:00"));
    EXPECT_EQ(long_queue(admin).first, "2880");
}

} // namespace
} // namespace gpuq::govern
