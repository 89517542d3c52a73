// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/trace.h"

#include "policy/course_times.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <unistd.h>

namespace gpuq::sim {
namespace {

using namespace std::chrono_literals;

const std::string k_csv = "job_id,submit_s,duration_s,gpus,user,partition_or_vc,state\n"
                          "p2,160,30.9,4,\"bob, the second\",vc1,Pass\r\n"
                          "p1,100,2000,1,,vc2,\n";

const std::string k_swf = "; Version: 2.2\n"
                          ";\n"
                          "1 0 5 100 4 -1 -1 4 7200 -1 1 3 2 -1 1 -1 -1 -1\n"
                          "  2 10 -1 -1 2 -1 -1 2 60 -1 5 3 2 -1 1 -1 -1 -1\n";

const std::string k_sacct =
    "JobID|User|Account|Partition|Submit|Eligible|Start|End|Elapsed|Timelimit|ReqTRES|AllocTRES|"
    "State\n"
    "7|ann|labA|gpu|2026-11-20T12:00:00|2026-11-20T12:00:00|2026-11-20T12:00:10|2026-11-20T12:01:"
    "10|"
    "00:01:00|02:00:00|billing=4,cpu=4,gres/gpu=2,node=1|billing=4,cpu=4,gres/gpu:k80=2,gres/gpu=2,"
    "node=1|COMPLETED\n"
    "7.batch||labA||2026-11-20T12:00:10||2026-11-20T12:00:10||00:01:00|||cpu=4|COMPLETED\n"
    "8|ann|labA|gpu|2026-11-20T12:00:05|2026-11-20T12:05:05|Unknown|Unknown|00:00:00|1-00:00:00|"
    "gres/gpu=1,node=1||PENDING\n"
    "10|ann|labA|gpu|2026-11-20T12:00:05|2026-11-20T12:00:05|2026-11-20T12:00:09|2026-11-20T12:00:"
    "09|00:00:00|02:00:00|gres/gpu=1,node=1||CANCELLED by 1001\n"
    "9|ann|labA|cpu|2026-11-20T12:00:05|2026-11-20T12:00:05|2026-11-20T12:00:06|Unknown|00:00:09|"
    "UNLIMITED|cpu=1|cpu=1|RUNNING\n";

TEST(Trace, ReadsCommaSeparatedValues)
{
    const auto trace = parse_trace(k_csv, "t.csv");
    ASSERT_TRUE(trace) << trace.error().text;
    ASSERT_EQ(trace->jobs.size(), 2U);
    EXPECT_EQ(trace->jobs[0].id, "p1");
    EXPECT_EQ(trace->jobs[0].submit, 0s);
    EXPECT_EQ(trace->jobs[1].submit, 60s);
    EXPECT_EQ(trace->jobs[1].duration, 30s);
    EXPECT_EQ(trace->jobs[1].gpus, 4);
    EXPECT_EQ(trace->jobs[1].user, "bob, the second");
    EXPECT_EQ(trace->jobs[1].state, "Pass");
    EXPECT_EQ(trace->jobs[1].limit, std::nullopt);
}

TEST(Trace, BlanksMayFollowTheCommas)
{
    const auto trace = parse_trace("submit_s, duration_s, gpus, limit_s, user, account\n"
                                   "1, 3600, 2, 7200, ann, lab\n",
                                   "t.csv");
    ASSERT_TRUE(trace) << trace.error().text;
    ASSERT_EQ(trace->jobs.size(), 1U);
    EXPECT_EQ(trace->jobs[0].gpus, 2);
    EXPECT_EQ(trace->jobs[0].limit, 2h);
    EXPECT_EQ(trace->jobs[0].user, "ann");
    EXPECT_EQ(trace->jobs[0].account, "lab");
}

TEST(Trace, ReadsTheStandardWorkloadFormat)
{
    const auto trace = parse_trace(k_swf, "t.swf");
    ASSERT_TRUE(trace) << trace.error().text;
    ASSERT_EQ(trace->jobs.size(), 1U);
    EXPECT_EQ(trace->never_started, 1U);
    EXPECT_EQ(trace->jobs[0].gpus, 4);
    EXPECT_EQ(trace->jobs[0].limit, 2h);
    EXPECT_EQ(trace->jobs[0].start, 5s);
    EXPECT_EQ(trace->jobs[0].user, "3");
    EXPECT_EQ(trace->jobs[0].partition, "1");
}

TEST(Trace, ReadsWhatSacctPrints)
{
    const auto trace = parse_trace(k_sacct, "sacct");
    ASSERT_TRUE(trace) << trace.error().text;
    ASSERT_EQ(trace->jobs.size(), 1U);
    EXPECT_EQ(trace->never_started, 2U);
    EXPECT_EQ(trace->without_gpus, 1U);
    const TraceJob& job = trace->jobs[0];
    EXPECT_EQ(job.gpus, 2);
    EXPECT_EQ(job.model, "") << "it got a k80, but would have taken any";
    EXPECT_EQ(job.limit, 2h);
    EXPECT_EQ(job.start, 10s);
    EXPECT_EQ(job.duration, 60s);
    EXPECT_EQ(job.account, "labA");
}

TEST(Trace, KnowsItsDateIfTheFileHasOne)
{
    const auto sacct = parse_trace(k_sacct, "sacct");
    EXPECT_TRUE(sacct->clock.is_known);
    EXPECT_FALSE(sacct->clock.instant);
    EXPECT_EQ(sacct->clock.at(1h), policy::local_time_of("2026-11-20T13:00"));
    const auto swf =
        parse_trace("; UnixStartTime: 1031270400\n" + k_swf.substr(0, k_swf.find('\n')) +
                        "\n  2 10 5 100 2 -1 -1 2 60 -1 5 3 2 -1 1 -1 -1 -1\n",
                    "t.swf");
    ASSERT_TRUE(swf) << swf.error().text;
    EXPECT_EQ(swf->clock.instant, Time(1031270410s));
    for (const std::string wrong : {"soon", "-1", "0", "99999999999999", ""}) {
        EXPECT_FALSE(parse_trace("; UnixStartTime: " + wrong + "\n" + k_swf, "t")->clock.is_known);
    }
    EXPECT_FALSE(parse_trace(k_csv, "csv")->clock.is_known);
}

TEST(Trace, ReadsSharesOfGpus)
{
    const auto csv = parse_trace("submit_s,duration_s,gpus,shares\n0,10,0,2\n1,10,1,0\n2,10,0,\n"
                                 "3,10,1,\n",
                                 "t.csv");
    ASSERT_TRUE(csv) << csv.error().text;
    ASSERT_EQ(csv->jobs.size(), 3U);
    EXPECT_EQ(csv->jobs[0].shares, 2);
    EXPECT_EQ(csv->jobs[0].gpus, 0);
    EXPECT_EQ(csv->jobs[1].shares, 0);
    EXPECT_EQ(csv->without_gpus, 1U);
    for (const std::string wrong : {"0,10,1,1,1", "0,10,0,1,2"}) {
        const auto none =
            parse_trace("submit_s,duration_s,gpus,shares,nodes\n" + wrong + "\n", "t.csv");
        ASSERT_FALSE(none);
        EXPECT_EQ(none.error().text,
                  "t.csv:2: shares are of one GPU: gpus must be 0, and nodes 0 or 1");
    }
    std::string text = k_sacct.substr(0, k_sacct.find('\n') + 1);
    for (const char* tres :
         {"gres/shard=1,node=1", "gres/mps=50,node=1", "gres/shard=2,node=2", "cpu=4,node=1"}) {
        text += std::string("7|ann|labA|gpu|2026-11-20T12:00:00|2026-11-20T12:00:00|2026-11-20T12:"
                            "00:10|2026-11-20T12:01:10|00:01:00|02:00:00|") +
                tres + "|" + tres + "|COMPLETED\n";
    }
    const auto sacct = parse_trace(text, "sacct");
    ASSERT_TRUE(sacct) << sacct.error().text;
    ASSERT_EQ(sacct->jobs.size(), 1U);
    EXPECT_EQ(sacct->jobs[0].shares, 1);
    EXPECT_EQ(sacct->other_shares, 2U);
    EXPECT_EQ(sacct->without_gpus, 1U);
}

TEST(Trace, CountsAWaitFromWhenTheJobWasEligible)
{
    const auto trace = parse_trace("JobID|Submit|Eligible|Start|Elapsed|AllocTRES\n"
                                   "1|2026-11-20T12:00:00|2026-11-20T12:00:00|2026-11-20T12:00:00|"
                                   "00:00:01|gres/gpu=1\n"
                                   "2|2026-11-20T12:00:00|2026-11-20T13:00:00|2026-11-20T13:00:04|"
                                   "1-00:00:01|gres/gpu=1\n",
                                   "sacct");
    ASSERT_TRUE(trace) << trace.error().text;
    EXPECT_EQ(trace->jobs[1].submit, 1h);
    EXPECT_EQ(trace->jobs[1].start, 1h + 4s);
    EXPECT_EQ(trace->jobs[1].duration, 24h + 1s);
}

TEST(Trace, NamesFileAndLineOfWhatIsWrong)
{
    const auto error = [](const std::string& text) { return parse_trace(text, "t").error().text; };
    EXPECT_EQ(error(""), "t:1: an empty trace");
    EXPECT_EQ(error("submit_s,job_id\n"), "t:1: the header has no column duration_s; it needs at "
                                          "least submit_s, duration_s and gpus");
    EXPECT_EQ(error("submit_s,duration_s,gpus\n1,2,3\n1,2\n"), "t:3: 2 fields; the header has 3");
    EXPECT_EQ(error("submit_s,duration_s,gpus\n\n1,x,3\n"),
              "t:3: duration_s is not a number of seconds: 'x'");
    EXPECT_EQ(error("submit_s,duration_s,gpus\n1,-2,3\n"),
              "t:2: submit_s and duration_s are required and can't be negative");
    EXPECT_EQ(error("submit_s,duration_s,gpus\n1,2,99999999\n"),
              "t:2: gpus is not a number: '99999999'");
    EXPECT_EQ(error("; swf\n1 2 3\n"), "t:2: 3 fields; the Standard Workload Format has 18");
    EXPECT_EQ(error("JobID|Submit|Start|End|ReqTRES\n1|yesterday|||\n"),
              "t:2: 'yesterday' is not a time in sacct's format");
    EXPECT_EQ(
        error("JobID|Submit|Start|Elapsed\n1|||\n"),
        "t:1: the header needs at least JobID, Submit, Start, one of Elapsed and End, and one "
        "of AllocTRES and ReqTRES, which contain the GPUs");
    EXPECT_EQ(error("submit_s,duration_s,gpus\n1,\x1b[2J,3\n"),
              "t:2: duration_s is not a number of seconds: '^[[2J'");
    EXPECT_EQ(error(std::string(70000, 'a')), "t:1: longer than 65536 bytes");
}

TEST(Trace, KnowsEveryColumnOrRefusesIt)
{
    const auto error = [](const std::string& header) {
        const auto trace = parse_trace(header + "\n", "t");
        return trace ? "accepted" : trace.error().text.substr(0, trace.error().text.find(';'));
    };
    EXPECT_EQ(error("submit_s,duration_s,gpus,limit"),
              "t:1:26: unknown column 'limit' (did you mean 'limit_s'?)");
    EXPECT_EQ(error("submit_s, duration_s, gpus, \"limt_s\""),
              "t:1:30: unknown column 'limt_s' (did you mean 'limit_s'?)");
    EXPECT_EQ(error("submit_s,duration_s,gpus,"), "t:1: column 4 of the header has no name");
    EXPECT_EQ(error("submit_s,gpus,duration_s,gpus"),
              "t:1:26: column 'gpus' duplicates the one at 10");
    EXPECT_EQ(error("submit_s,gpus,duration_s,partition,partition_or_vc"),
              "t:1:36: column 'partition_or_vc' duplicates the one at 26");
    EXPECT_EQ(error("submit_s,gpus,duration_s,wait_s,name"), "accepted") << "and not read";
}

TEST(Trace, MayBeginWithAByteOrderMark)
{
    for (const std::string& text : {k_csv, k_swf, k_sacct}) {
        const auto trace = parse_trace("\xef\xbb\xbf" + text, "t");
        ASSERT_TRUE(trace) << trace.error().text;
        EXPECT_EQ(*trace, *parse_trace(text, "t"));
    }
}

class TraceFile : public ::testing::Test {
protected:
    void SetUp() override
    {
        std::string directory =
            (std::filesystem::temp_directory_path() / "gpuq-sim-XXXXXX").string();
        ASSERT_NE(mkdtemp(directory.data()), nullptr);
        m_directory = directory;
    }
    void TearDown() override { std::filesystem::remove_all(m_directory); }

    std::filesystem::path packed(const std::string& text) const
    {
        const auto path = m_directory / "t.csv.gz";
        gzFile file = gzopen(path.c_str(), "wb");
        gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
        gzclose(file);
        return path;
    }

    std::filesystem::path m_directory;
};

TEST_F(TraceFile, MayBePackedOrNot)
{
    std::ofstream(m_directory / "plain") << k_csv;
    const auto plain = read_trace(m_directory / "plain");
    ASSERT_TRUE(plain) << plain.error().text;
    EXPECT_EQ(*plain, *read_trace(packed(k_csv)));
}

TEST_F(TraceFile, ThatIsMissingOrCutOffIsSaid)
{
    EXPECT_EQ(read_trace(m_directory / "none").error().kind, Error::Kind::missing);
    EXPECT_EQ(read_trace(m_directory).error().kind, Error::Kind::io);
    const auto path = packed(std::string(100000, ',') + k_csv);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    const auto cut = read_trace(path);
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().kind, Error::Kind::io);
}

/// Changes a few bytes at a time; each reader must return jobs or an error.
TEST(Trace, SurvivesWhateverTheFileHolds)
{
    std::mt19937 random(20261122);
    const std::string special = "|,;\"\n\r\t-.:9 \0\x1b\xff";
    int read = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string text = round % 3 == 0 ? k_csv : round % 3 == 1 ? k_swf : k_sacct;
        for (int change = static_cast<int>(random() % 6); change >= 0 && !text.empty(); --change) {
            const std::size_t at = random() % text.size();
            switch (random() % 4) {
            case 0:
                text[at] = static_cast<char>(random());
                break;
            case 1:
                text[at] = special[random() % special.size()];
                break;
            case 2:
                text.erase(at, random() % 20);
                break;
            default:
                text.insert(at, text.substr(random() % text.size(), random() % 30));
                break;
            }
        }
        const auto trace = parse_trace(text, "fuzz");
        if (!trace) {
            EXPECT_EQ(trace.error().kind, Error::Kind::usage);
            EXPECT_EQ(trace.error().text.rfind("fuzz:", 0), 0U) << trace.error().text;
            continue;
        }
        ++read;
        for (const TraceJob& job : trace->jobs) {
            EXPECT_GE(job.submit, 0s);
            EXPECT_GE(job.duration, 0s);
            EXPECT_GT(job.gpus, 0);
        }
    }
    EXPECT_GT(read, 500);
}

TEST(Trace, TellsWhatJobsWithoutGpusNeedToWhoWantsThem)
{
    const std::string text =
        "submit_s,duration_s,gpus,nodes,min_nodes,cpus,memory_mib,features,qos,submit_ms,"
        "duration_ms\n"
        "0,10,0,2,1,24,2800,fast+big,high,20,999\n"
        "1,10,1,,,,,,,,\n";
    const auto some = parse_trace(text, "t");
    ASSERT_TRUE(some);
    EXPECT_EQ(some->jobs.size(), 1U);
    EXPECT_EQ(some->without_gpus, 1U);
    const auto all = parse_trace(text, "t", Which::all);
    ASSERT_TRUE(all);
    ASSERT_EQ(all->jobs.size(), 2U);
    EXPECT_EQ(all->without_gpus, 0U);
    const TraceJob& job = all->jobs[0];
    EXPECT_EQ(job.nodes, 2);
    EXPECT_EQ(job.min_nodes, 1);
    EXPECT_EQ(job.cpus, 24);
    EXPECT_EQ(job.memory_mib, 2800);
    EXPECT_EQ(job.features, "fast+big");
    EXPECT_EQ(job.qos, "high");
    EXPECT_EQ(job.submit_ms, 20);
    EXPECT_EQ(job.duration_ms, 999);
    EXPECT_EQ(all->jobs[1].submit_ms, std::nullopt);
    const std::string many = "submit_s,duration_s,gpus,cpus\n0,1,1,many\n";
    EXPECT_FALSE(parse_trace(many, "t", Which::all));
    EXPECT_TRUE(parse_trace(many, "t")); // The column is not read.
}

} // namespace
} // namespace gpuq::sim
