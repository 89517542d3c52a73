// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "ports/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Strings = std::vector<std::string>;

const std::string k_class_policy = "version: 1\n"
                                   "pools:\n"
                                   "  class: {nodes: 'c[1-3]', gpus: 'a10:2'}\n"
                                   "queues:\n"
                                   "  short: {time: 2h, pools: class}\n"
                                   "reserve: {users: ada, longest: 4h, most: 4}\n";

/// Ada calls gpuq by sudo, as an account that is an operator in Slurm.
class Reserve : public testing::Test {
protected:
    FakeServices m_services;

    Reserve()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
        m_services.ruler.files["applied.yaml"] = k_class_policy;
        call_as("ada");
        for (const char* name : {"c1", "c2", "c3"}) {
            Node node;
            node.name = name;
            node.gpus = {{"a10", 2, 0}};
            node.partitions = {"short"};
            m_services.slurm.machines.push_back(node);
        }
    }

    void call_as(const std::string& user)
    {
        m_services.variables = {{"SUDO_UID", std::to_string(::geteuid() + 1)}, {"SUDO_USER", user}};
    }

    Use reserve(const Strings& arguments = {}, const Globals& globals = {})
    {
        return use(k_reserve_verb, m_services, arguments, globals);
    }
    Use reserve_class(Strings more = {})
    {
        Strings arguments{"--from", "1h", "--for", "2h", "--users", "ben,lena", "--name", "ml"};
        if (more.empty()) {
            more = {"--gpus", "3"};
        }
        arguments.insert(arguments.end(), more.begin(), more.end());
        return reserve(arguments);
    }
    Strings names() const
    {
        Strings names;
        for (const Reservation& one : m_services.slurm.kept) {
            names.push_back(one.name);
        }
        return names;
    }
};

TEST_F(Reserve, AsksSlurmForWholeNodesOfThePool)
{
    const Use done = reserve_class();
    EXPECT_EQ(done.status, 0) << done.err;
    ASSERT_EQ(m_services.slurm.reserved.size(), 1U);
    const ReservationSpec& spec = m_services.slurm.reserved[0];
    EXPECT_EQ(spec.name, "gpuq:ada:ml");
    EXPECT_EQ(spec.partition, "short");
    EXPECT_EQ(spec.nodes, 2);
    EXPECT_EQ(spec.start, m_services.time.now() + 1h);
    EXPECT_EQ(spec.duration, 2h);
    EXPECT_THAT(spec.users, ElementsAre("ben", "lena"));
    EXPECT_THAT(done.err, HasSubstr("4 GPUs on c1,c2: reserved from "));
    EXPECT_THAT(done.err, HasSubstr(" by ada (ml) for ben, lena\n"));
}

TEST_F(Reserve, RefusesWithTheLineOfTheRuleAndAsksSlurmForNothing)
{
    EXPECT_THAT(reserve_class({"--gpus", "5"}).err,
                HasSubstr("at most 4 GPUs may be reserved at the same time (applied.yaml:6)"));
    call_as("ben");
    const Use refused = reserve_class();
    EXPECT_EQ(refused.status, 121);
    EXPECT_THAT(refused.err, HasSubstr("only users ada may reserve GPUs (applied.yaml:6)"));
    EXPECT_THAT(m_services.slurm.reserved, IsEmpty());
}

TEST_F(Reserve, CountsAllGpusOfTheNodes)
{
    m_services.ruler.files["applied.yaml"] =
        std::string(k_class_policy).replace(k_class_policy.find("most: 4"), 7, "most: 3");
    EXPECT_THAT(reserve_class().err, HasSubstr("this is 4 GPUs; Slurm reserves whole nodes, those "
                                               "of pool class have 2 GPUs"));
}

TEST_F(Reserve, RefusesBadInput)
{
    const auto refusal = [&](const Strings& arguments) {
        const Use done = reserve(arguments);
        EXPECT_EQ(done.status, 2) << done.err;
        return done.err;
    };
    EXPECT_THAT(refusal({"--from", "1h"}), HasSubstr("reserve needs --for"));
    EXPECT_THAT(refusal({"ml"}), HasSubstr("unexpected argument 'ml'"));
    EXPECT_THAT(refusal({"--end-jobs"}), HasSubstr("goes with --cancel"));
    EXPECT_THAT(refusal({"--cancel", "ml", "--gpus", "2"}), HasSubstr("takes only --end-jobs"));
    const auto with = [&](const std::string& option, const std::string& value) {
        Strings arguments{"--from", "1h",     "--for", "2h",     "--users",
                          "ben",    "--gpus", "2",     "--name", "ml"};
        *(std::find(arguments.begin(), arguments.end(), option) + 1) = value;
        return refusal(arguments);
    };
    EXPECT_THAT(with("--from", "noon"), HasSubstr("'noon' is not a start"));
    EXPECT_THAT(with("--from", "2020-01-01T10:00"), HasSubstr("is in the past"));
    EXPECT_THAT(with("--from", "2"), HasSubstr("'2' is not a start"));
    EXPECT_THAT(with("--for", "2:30"), HasSubstr("2:30"));
    EXPECT_THAT(with("--users", "ben,-lena"), HasSubstr("'-lena' is not a user name"));
    EXPECT_THAT(with("--users", "ben,"), HasSubstr("'' is not a user name"));
    EXPECT_THAT(with("--gpus", "a10:1,k80:1"), HasSubstr("is not N or MODEL:N"));
    EXPECT_THAT(with("--gpus", "0"), HasSubstr("'0'"));
    EXPECT_THAT(with("--name", "a:b"), HasSubstr("--name 'a:b'"));
    EXPECT_THAT(with("--name", "a b"), HasSubstr("--name 'a b'"));
    EXPECT_THAT(with("--gpus", "k80:1"), HasSubstr("no pool of which nodes may be reserved has"));
    call_as("ada; rm");
    EXPECT_THAT(refusal({"--from", "1h", "--for", "2h", "--users", "ben", "--gpus", "2"}),
                HasSubstr("SUDO_USER"));
    EXPECT_THAT(m_services.slurm.reserved, IsEmpty());
}

TEST_F(Reserve, NeedsAPolicyInForce)
{
    m_services.ruler.files.erase("applied.yaml");
    const Use done = reserve_class();
    EXPECT_EQ(done.status, 121);
    EXPECT_THAT(done.err, HasSubstr("no policy is in force"));
}

TEST_F(Reserve, NamesTheErrorsOfThePolicy)
{
    m_services.ruler.files.erase("applied.yaml");
    m_services.variables["GPUQ_POLICY"] = "lab.yaml";
    m_services.files["lab.yaml"].text = k_class_policy + "nonsense: 1\n";
    const Use done = reserve_class();
    EXPECT_EQ(done.status, 121);
    EXPECT_THAT(done.err, HasSubstr("the policy has errors"));
    EXPECT_THAT(done.err, HasSubstr("lab.yaml:7"));
}

TEST_F(Reserve, AMakerRemovesOnlyTheirOwn)
{
    const Time now = m_services.time.now();
    for (const char* name : {"gpuq:ada:ml", "gpuq:eva:ml", "gpuq:eva:dl", "lecture"}) {
        m_services.slurm.kept.push_back({name, now, now + 1h, "c1", "short", {"ben"}, {}});
    }
    EXPECT_THAT(reserve({"--cancel", "dl"}).err, HasSubstr("was made by eva"));
    EXPECT_THAT(reserve({"--cancel", "eva:ml"}).err, HasSubstr("was made by eva"));
    EXPECT_THAT(reserve({"--cancel", "lecture"}).err, HasSubstr("not made by gpuq reserve"));
    EXPECT_EQ(reserve({"--cancel", "none"}).status, 2);
    EXPECT_EQ(names().size(), 4U);
    EXPECT_EQ(reserve({"--cancel", "ml"}).status, 0);
    EXPECT_THAT(names(), ElementsAre("gpuq:eva:ml", "gpuq:eva:dl", "lecture"));
    m_services.variables.clear(); // an operator, without sudo: Slurm decides
    EXPECT_EQ(reserve({"--cancel", "dl"}).status, 0);
    m_services.slurm.is_operator = false;
    EXPECT_EQ(reserve({"--cancel", "ml"}).status, 121);
    EXPECT_THAT(names(), ElementsAre("gpuq:eva:ml", "lecture"));
}

TEST_F(Reserve, EndsJobsOnlyIfAsked)
{
    EXPECT_EQ(reserve_class().status, 0);
    m_services.slurm.reservations_used = {"gpuq:ada:ml"};
    EXPECT_THAT(reserve({"--cancel", "ml"}).err, HasSubstr("add --end-jobs"));
    EXPECT_THAT(names(), ElementsAre("gpuq:ada:ml"));
    Globals json;
    json.json = true;
    const Use ended = reserve({"--cancel", "ml", "--end-jobs"}, json);
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.out, HasSubstr("\"reservations\": []"));
    EXPECT_THAT(names(), IsEmpty());
}

TEST_F(Reserve, ListsAllReservationsWithGpus)
{
    EXPECT_EQ(reserve().out, "no GPU is reserved\n");
    m_services.slurm.kept.push_back(
        {"lecture", m_services.time.now(), m_services.time.now() + 1h, "c[1-2]", "", {}, {"ml"}});
    EXPECT_EQ(reserve_class({"--gpus", "2"}).status, 0);
    const std::string list = reserve().out;
    EXPECT_THAT(list, HasSubstr("lecture  -"));
    EXPECT_THAT(list, HasSubstr("account ml"));
    EXPECT_THAT(list, HasSubstr("ml       ada"));
    Globals json;
    json.json = true;
    EXPECT_THAT(reserve({}, json).out, HasSubstr("\"slurm_name\": \"gpuq:ada:ml\""));
}

} // namespace
} // namespace gpuq::cli
