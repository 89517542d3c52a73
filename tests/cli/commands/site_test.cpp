// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/pages/site_page.h"

#include "cli/commands/verbs.h"
#include "cli/fake_services.h"
#include "cli/queries/shared_overview_file.h"
#include "govern/apply.h"
#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Names = std::vector<std::string>;

/// The current time is 2027-01-15 08:00 UTC. Three users of lab physics ran jobs, one of chemistry.
class Site : public testing::Test {
protected:
    FakeServices m_services;
    std::filesystem::path m_directory;

    Site()
    {
        std::string name = ::testing::TempDir() + "site-XXXXXX";
        m_directory = ::mkdtemp(name.data());
        m_services.past.uses = {
            {JobId{1}, "ada", "deep", "short", 10h, 1, {{"k80", 1}}, {}, "physics"},
            {JobId{2}, "bob", "broad", "short", 10h, 1, {{"k80", 1}}, {}, "physics"},
            {JobId{3}, "cyd", "broad", "short", 4h, 1, {{"k80", 1}}, {}, "physics"},
            {JobId{4}, "zoe", "c", "long", 1h, 1, {{"k80", 1}}, {}, "chemistry"}};
        m_services.accounted = std::string(
            "Submit|JobID|User|Account|Partition|State|Eligible|Start|ReqTRES|AllocTRES\n");
        Node node;
        node.name = "n1";
        node.cpus = 8;
        node.cpus_in_use = 1;
        node.partitions = {"short"};
        node.gpus = {{"k80", 4, 1}};
        m_services.slurm.machines = {node};
    }
    ~Site() override { std::filesystem::remove_all(m_directory); }

    void in_force(const std::string& rules)
    {
        (void)m_services.ruler.write(govern::k_applied,
                                     "version: 1\n"
                                     "pools:\n"
                                     "  all: {nodes: n1, gpus: 'k80:4'}\n"
                                     "queues:\n"
                                     "  short: {time: 2h, pools: all, wait: {max: 2m}}\n"
                                     "  long: {time: 8h, pools: all}\n" +
                                         rules);
    }
    void started(const std::string& user, const std::string& queue = "short",
                 const std::string& day = "15")
    {
        const std::string date = "2027-01-" + day + "T06:0";
        *m_services.accounted += date + "0:00|1|" + user + "|lab|" + queue + "|COMPLETED|" + date +
                                 "0:00|" + date + "1:00|gres/gpu=1|gres/gpu=1\n";
    }
    Use site(const Names& arguments) { return use(k_site_verb, m_services, arguments); }
    std::string page()
    {
        const Use done = site({"--html", m_directory});
        EXPECT_EQ(done.status, 0) << done.err;
        return file("index.html");
    }
    std::string file(const std::string& name)
    {
        std::ifstream file(m_directory / name);
        return {std::istreambuf_iterator<char>(file), {}};
    }
};

TEST_F(Site, NamesNobodyUnlessThePolicySaysSo)
{
    for (const char* user : {"ada", "bob", "cyd", "zoe"}) {
        started(user);
    }
    for (const std::string& text : {page(), site({"--prometheus"}).out}) {
        for (const char* name : {"ada", "bob", "zoe", "physics", "chemistry", "deep", "broad"}) {
            EXPECT_THAT(text, Not(HasSubstr(name)));
        }
    }
    in_force("publish: {names: labs, least_users: 3}\n");
    EXPECT_THAT(page(), AllOf(HasSubstr("Use of the last week by lab"), Not(HasSubstr("ada"))));
}

TEST_F(Site, ShowsNoFigureOfFewUsers)
{
    in_force("publish: {names: labs, least_users: 3}\n");
    for (const char* user : {"ada", "bob", "cyd"}) {
        started(user);
    }
    started("zoe", "long");
    const std::string shown = page();
    EXPECT_THAT(shown, HasSubstr("<th scope=\"row\">short</th><td class=\"right\">3</td>"
                                 "<td class=\"right\">0</td><td class=\"right\">1 min</td>"));
    EXPECT_THAT(shown, HasSubstr("<th scope=\"row\">long</th><td class=\"right\">-</td>"));
    // Chemistry has one user: only with physics it has enough.
    EXPECT_THAT(shown, AllOf(Not(HasSubstr("physics")), Not(HasSubstr("chemistry"))));
    EXPECT_THAT(shown, HasSubstr("<th scope=\"row\">others</th><td class=\"right\">25</td>"));
    const std::string metrics = site({"--prometheus"}).out;
    EXPECT_THAT(metrics, HasSubstr("gpuq_site_queue_jobs{queue=\"short\",window=\"1d\"} 3\n"));
    EXPECT_THAT(metrics, Not(HasSubstr("queue=\"long\"")));
    EXPECT_THAT(metrics,
                HasSubstr("gpuq_site_wait_target_met{queue=\"short\",quantile=\"1\"} 1\n"));
    EXPECT_THAT(
        metrics,
        HasSubstr("gpuq_site_lab_use_gpu_seconds{lab=\"_others\",kind=\"unknown\"} 90000\n"));
    m_services.past.uses.pop_back();
    EXPECT_THAT(page(), HasSubstr("<th scope=\"row\">physics</th><td class=\"right\">24</td>"));
}

TEST_F(Site, TellsTheDayFromTheWeek)
{
    in_force("publish: {least_users: 2}\n");
    started("ada");
    started("bob", "short", "10");
    const std::string metrics = site({"--prometheus"}).out;
    EXPECT_THAT(metrics, Not(HasSubstr("window=\"1d\"")));
    EXPECT_THAT(metrics, HasSubstr("gpuq_site_queue_jobs{queue=\"short\",window=\"7d\"} 2\n"));
    EXPECT_EQ(m_services.accounted_since, m_services.time.now() - 168h);
}

TEST_F(Site, OfNoPolicyHasThePartitionsThatSlurmShows)
{
    Partition shown;
    shown.name = "gpu<";
    m_services.slurm.queues = {shown};
    for (const char* user : {"a", "b", "c", "d", "e"}) {
        started(user, "gpu<");
        started(user, "secret-partner");
    }
    EXPECT_THAT(page(), AllOf(HasSubstr("<th scope=\"row\">gpu&lt;</th><td class=\"right\">5</td>"),
                              Not(HasSubstr("secret"))));
    EXPECT_THAT(site({"--prometheus"}).out, Not(HasSubstr("secret")));
}

TEST_F(Site, ShowsTheUnknownAsUnknown)
{
    m_services.past.silent = true;
    m_services.slurm.machines[0].gpus[0].in_use.reset();
    const Use done = site({"--html", m_directory, "--prometheus"});
    EXPECT_EQ(done.status, 0);
    EXPECT_THAT(done.err, HasSubstr("waits and use are shown as unknown"));
    EXPECT_THAT(file("index.html"), AllOf(HasSubstr("Unknown: Slurm&#39;s accounting"),
                                          HasSubstr("? of 4"), HasSubstr("2027-01-15 08:00:00")));
    EXPECT_THAT(done.out, AllOf(HasSubstr("gpuq_site_accounting_up 0\n"),
                                Not(HasSubstr("state=\"free\"")), Not(HasSubstr("use_gpu"))));
}

TEST_F(Site, KeepsTheOldFilesIfTheControllerIsSilent)
{
    const std::string before = page();
    const std::string prom = m_directory / "g.prom";
    ::umask(077);
    EXPECT_EQ(site({"--textfile", prom}).status, 0);
    ::umask(022);
    EXPECT_EQ(std::filesystem::status(prom).permissions(), std::filesystem::perms(0644));
    m_services.slurm.silent = true;
    EXPECT_EQ(site({"--html", m_directory, "--textfile", prom}).status, 120);
    EXPECT_EQ(file("index.html"), before);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(m_directory), {}), 2);
}

TEST_F(Site, RefusesWhatItCanNotWrite)
{
    EXPECT_EQ(site({}).status, 2);
    EXPECT_EQ(site({"--html", m_directory / "none"}).status, 2);
    EXPECT_EQ(site({"--prometheus", "word"}).status, 2);
    EXPECT_EQ(m_services.slurm_opened, 0);
}

TEST(PlannedUse, NamesOnlyCoursesThatArePublished)
{
    const auto policy = policy::read_policy("version: 1\n"
                                            "pools: {all: {nodes: n1}}\n"
                                            "queues: {q: {time: 2h, pools: all}}\n"
                                            "courses: {ml: {nodes: n1, duration: 1h, users: ada,\n"
                                            "  start: '2027-01-15T09:00'}}\n",
                                            "p")
                            ->policy;
    const std::vector<ReservedGpus> reserved = {
        {{"ml", {}, {}, "n1", "", {"ada"}, {}}, 4, {}, {}},
        {{"gpuq:ada:x", {}, {}, "n1", "", {}, {}}, 4, {}, {}}};
    EXPECT_EQ(planned_use(reserved, &policy)[0].what, "course");
    EXPECT_EQ(planned_use(reserved, &policy)[1].what, "reservation");
    EXPECT_EQ(planned_use(reserved, nullptr)[0].what, "reservation");
    policy::Policy published = policy;
    published.publish.courses = true;
    EXPECT_EQ(planned_use(reserved, &published)[0].what, "course ml");
}

Job running(std::uint32_t id, std::uint32_t uid)
{
    Job job;
    job.id = JobId{id};
    job.uid = uid;
    job.state = JobState::running;
    job.partition = "short";
    job.held.whole = {{"n1", "k80", 1}};
    return job;
}

/// `gpuq site --overview`: Site's file is read by the fake services as by other processes.
class SiteOverview : public Site {
protected:
    SiteOverview()
    {
        m_services.slurm.jobs = {running(1, ::getuid()), running(2, ::getuid() + 1)};
        m_services.set.overview_dir = m_directory;
    }
    Use write()
    {
        m_services.slurm.requests.clear();
        const Use done = site({"--overview", m_directory});
        if (std::filesystem::exists(m_directory / "lab.overview")) {
            m_services.files[m_directory / "lab.overview"] = {file("lab.overview"), 0, 0644};
        }
        return done;
    }
    /// Moves the access time, as the first read does.
    void set_read(bool was_read)
    {
        const std::array<timespec, 2> times{timespec{was_read ? 2 : 1, 0}, timespec{1, 0}};
        ASSERT_EQ(::utimensat(AT_FDCWD, (m_directory / "lab.overview").c_str(), times.data(), 0),
                  0);
    }
    std::optional<Overview> shared() { return shared_overview(m_services, "lab")(); }
    const Names& requests() { return m_services.slurm.requests; }
};

TEST_F(SiteOverview, IsReadByEveryUserAndByNobodyChanged)
{
    ::umask(0077);
    ASSERT_EQ(write().status, 0);
    ::umask(0022);
    struct stat facts {};
    ASSERT_EQ(::stat((m_directory / "lab.overview").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777U, 0644U);
    const auto overview = shared();
    ASSERT_TRUE(overview);
    EXPECT_EQ(overview->uid, ::getuid());
    ASSERT_EQ(overview->jobs.size(), 1U);
    EXPECT_EQ(overview->jobs[0].job.id, JobId{1});
    EXPECT_EQ(overview->holdings.size(), 2U);
}

TEST_F(SiteOverview, QueriesOnlyAsLongAsSomebodyReadsIt)
{
    ASSERT_EQ(write().status, 0);
    EXPECT_EQ(requests(), (Names{"inventory", "controller", "reservations", "all_jobs"}));
    set_read(false);
    m_services.time.advance(30s);
    ASSERT_EQ(write().status, 0);
    EXPECT_EQ(requests(), Names{});
    set_read(true);
    ASSERT_EQ(write().status, 0);
    EXPECT_EQ(requests(), (Names{"inventory", "all_jobs"}));
    set_read(true);
    m_services.time.advance(20s); // too early
    ASSERT_EQ(write().status, 0);
    EXPECT_EQ(requests(), Names{});
}

TEST_F(SiteOverview, ChecksNowAndThenThatNothingIsHidden)
{
    ASSERT_EQ(write().status, 0);
    for (int i = 0; i < 6; ++i) {
        set_read(true);
        m_services.time.advance(30s);
        ASSERT_EQ(write().status, 0);
    }
    EXPECT_EQ(requests(), (Names{"inventory", "controller", "reservations", "all_jobs"}));
}

TEST_F(SiteOverview, IsRemovedIfSlurmHidesAnything)
{
    ASSERT_EQ(write().status, 0);
    m_services.slurm.self.private_data = {"usage"};
    set_read(true);
    m_services.time.advance(180s);
    const Use done = write();
    EXPECT_NE(done.status, 0);
    EXPECT_THAT(done.err, HasSubstr("PrivateData=usage"));
    EXPECT_FALSE(std::filesystem::exists(m_directory / "lab.overview"));
    m_services.slurm.self.private_data.clear();
    m_services.slurm.hides_others = true;
    EXPECT_NE(write().status, 0);
    EXPECT_FALSE(std::filesystem::exists(m_directory / "lab.overview"));
}

TEST_F(SiteOverview, StaysWhenTheControllerIsSilent)
{
    ASSERT_EQ(write().status, 0);
    set_read(true);
    m_services.time.advance(30s);
    m_services.slurm.silent = true;
    EXPECT_EQ(write().status, 120);
    EXPECT_TRUE(shared());
    m_services.time.advance(60s);
    EXPECT_FALSE(shared());
}

TEST_F(SiteOverview, OfAnotherUserIsNotBelieved)
{
    ASSERT_EQ(write().status, 0);
    ASSERT_TRUE(shared());
    m_services.files[m_directory / "lab.overview"].distrust = fail(Error::Kind::denied, "others");
    EXPECT_FALSE(shared());
    m_services.set.overview_dir = "off";
    EXPECT_FALSE(shared_overview(m_services, "lab"));
}

TEST_F(SiteOverview, IsMadeAlone)
{
    for (const char* other : {"--prometheus", "--html=/tmp", "--textfile=/tmp/x", "--policy=x"}) {
        EXPECT_EQ(site({"--overview", m_directory, other}).status, 2) << other;
    }
    EXPECT_EQ(site({"--overview", m_directory / "none"}).status, 2);
}

} // namespace
} // namespace gpuq::cli
