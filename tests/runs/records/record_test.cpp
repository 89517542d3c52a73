// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/record.h"

#include "ports/cluster.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using std::chrono::microseconds;
using std::chrono::minutes;

const Time k_written{microseconds{1'795'180'318'042'007}};

gpuq::Run small_run()
{
    Run run{RunKey::parse("20261120T131158.042Z-0f3a9c1e5b7d2468").value()};
    run.cluster = "local";
    run.user = "ada";
    run.host = "login1";
    run.version = "0.1.0";
    run.submitted_at = k_written;
    run.request.program = {"python3", "train.py"};
    run.request.name = "train";
    run.request.work_dir = "/home/ada";
    run.request.walltime = minutes{90};
    run.request.queue = "gpu";
    return run;
}

gpuq::Run full_run()
{
    Run run = small_run();
    Request& request = run.request;
    request.program = {"/bin/\xff\xfe tool", "", "--x={\"hex\": \"66\"}", "\n\t\"\\"};
    request.gpus = {2, "k80", 16384, GpuShare{GpuShare::Kind::mps, 50, 100, 2, 1000}, "1g.5gb"};
    request.nodes = 2;
    request.tasks_per_node = 4;
    request.gpus_per_task = 1;
    request.cpus = 8;
    request.memory_mib = 1ULL << 40;
    request.account = "lab";
    request.qos = "";
    request.after = JobId{4'000'000'000U};
    request.input = Input::pipe;
    request.setup.env = {{"A", "1"}, {"B", "\x80"}};
    request.setup.sources = {"/home/ada/env.sh", "/home/\xff.sh"};
    request.setup.modules = {"cuda/12", "gcc"};
    request.setup.conda = "/opt/env";
    request.setup.venv = "/home/ada/.venv";
    request.setup.container = "image.sif";
    request.setup.container_command = {"apptainer", "exec", "{image}"};
    request.slurm_options = "--nice=5";
    request.network = true;
    run.limits = {0, ~std::uint64_t{0}};
    run.environment = {"PATH=/bin", "LATIN=caf\xe9", "FUNC=() {\n x\n}", "NOEQUALS", "UTF=\u00e9"};
    return run;
}

void expect_same(const Run& got, const Run& wanted)
{
    EXPECT_EQ(got.key, wanted.key);
    EXPECT_EQ(got.cluster, wanted.cluster);
    EXPECT_EQ(got.user, wanted.user);
    EXPECT_EQ(got.host, wanted.host);
    EXPECT_EQ(got.version, wanted.version);
    EXPECT_EQ(got.submitted_at, wanted.submitted_at);
    EXPECT_TRUE(got.request == wanted.request);
    EXPECT_EQ(got.environment, wanted.environment);
    EXPECT_EQ(got.limits, wanted.limits);
}

TEST(Record, ARunSurvivesRunJson)
{
    for (const gpuq::Run& run : {small_run(), full_run()}) {
        const auto read = run_from_json(to_json(run));
        ASSERT_TRUE(read) << read.error().text;
        expect_same(*read, run);
    }
}

TEST(Record, EveryInputSurvives)
{
    for (const Input input : {Input::none, Input::pipe, Input::terminal}) {
        gpuq::Run run = small_run();
        run.request.input = input;
        EXPECT_EQ(run_from_json(to_json(run))->request.input, input);
    }
}

TEST(Record, ATerminalSurvivesAndOlderRunsHaveNone)
{
    gpuq::Run run = small_run();
    run.request.pty = Pty{{50, 132}, /*shell=*/true};
    const std::string text = to_json(run);
    EXPECT_EQ(run_from_json(text)->request, run.request);
    std::string older = to_json(small_run());
    const std::size_t at = older.find("    \"pty\": null,\n");
    ASSERT_NE(at, std::string::npos);
    older.erase(at, older.find('\n', at) + 1 - at);
    EXPECT_EQ(run_from_json(older)->request.pty, std::nullopt);
    std::string wrong = text;
    wrong.replace(wrong.find("132"), 3, "\"x\"");
    EXPECT_FALSE(run_from_json(wrong));
}

TEST(Record, OlderRunsHaveWholeGpus)
{
    std::string older = to_json(small_run());
    const std::size_t at = older.find("\"share\"");
    ASSERT_NE(at, std::string::npos);
    older.replace(at, 7, "\"later\"");
    older.replace(older.find("\"mig\""), 5, "\"old\"");
    EXPECT_EQ(run_from_json(older)->request, small_run().request);
}

TEST(Record, WhatWasShownSurvives)
{
    const Shown shown{1ULL << 40, 7};
    EXPECT_EQ(*shown_from_json(to_json(shown)), shown);
    EXPECT_FALSE(shown_from_json("{}"));
}

TEST(Record, BytesThatAreNotUtf8AreHex)
{
    EXPECT_NE(to_json(full_run()).find(R"("hex": "4c4154494e3d636166e9")"), std::string::npos);
}

TEST(Record, UnknownFieldsAreIgnored)
{
    std::string text = to_json(small_run());
    text.insert(1, R"("colour": "blue",)");
    EXPECT_TRUE(run_from_json(text));
}

TEST(Record, SaysWhatIsWrong)
{
    const std::string good = to_json(small_run());
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        text.replace(text.find(from), from.size(), to);
        const auto read = run_from_json(text);
        return read ? std::string("fine") : read.error().text;
    };
    EXPECT_EQ(run_from_json("{").error().text, "run.json: not a JSON document");
    EXPECT_EQ(run_from_json("[]").error().text,
              "run.json: 'the document' is missing or has the wrong type");
    EXPECT_EQ(with("\"schema\": 1", "\"schema\": 2"),
              "run.json: schema 2, this gpuq " GPUQ_VERSION " reads schema 1");
    EXPECT_EQ(with("20261120T", "../../etc"), "not the key of a run");
    EXPECT_EQ(with("\"nodes\": 1", "\"nodes\": 1e30"),
              "run.json: request: 'nodes' is missing or has the wrong type");
    EXPECT_EQ(with("\"nodes\": 1", "\"nodes\": 4294967297"),
              "run.json: request: 'nodes' is missing or has the wrong type");
    EXPECT_EQ(with("\"input\": \"none\"", "\"input\": \"telepathy\""),
              "run.json: request: 'input' is missing or has the wrong type");
    EXPECT_EQ(with("\"environment\": []", "\"environment\": [{\"hex\": \"6\"}]"),
              "run.json: 'environment' is missing or has the wrong type");
    EXPECT_EQ(with("\"share\": null", "\"share\": {\"kind\": \"slice\", \"parts\": 1}"),
              "run.json: invalid share");
    EXPECT_EQ(with("\"share\": null", "\"share\": {\"kind\": \"shard\"}"),
              "run.json: share: 'parts' is missing or has the wrong type");
    EXPECT_EQ(with("\"count\": 1", "\"count\": \"1\""),
              "run.json: gpus: 'count' is missing or has the wrong type");
}

TEST(Record, ATruncatedFileIsNeverHalfARun)
{
    const std::string good = to_json(full_run());
    for (std::size_t size = 0; size + 2 < good.size(); size += 7) {
        EXPECT_FALSE(run_from_json(std::string_view(good).substr(0, size)));
    }
}

TEST(Record, TheSmallFilesSurvive)
{
    const LinkJob link{"local", JobId{4242}, k_written, true};
    EXPECT_EQ(link_job_from_json(to_json(link)).value(), link);
    const Ending ending{137, Cause::memory, "n1 ran out of memory", k_written};
    EXPECT_EQ(ending_from_json(to_json(ending)).value(), ending);
    const StopRequest stop{"ada@\xff", k_written};
    EXPECT_EQ(stop_request_from_json(to_json(stop)).value(), stop);
    EXPECT_FALSE(link_job_from_json(R"({"schema":1,"cluster":"c","job":-1})"));
    EXPECT_FALSE(ending_from_json(R"({"schema":1,"status":0})"));
    EXPECT_FALSE(stop_request_from_json(""));
}

TEST(Record, AChangedWalltimeComesBack)
{
    const WalltimeChange change{std::chrono::minutes(210), "ada@login1",
                                Time(std::chrono::seconds(9)), std::nullopt};
    EXPECT_EQ(walltime_change_from_json(to_json(change)).value(), change);
    WalltimeChange chained = change;
    chained.chain.emplace().supervisor = "/opt/gpuq-supervisor";
    EXPECT_EQ(walltime_change_from_json(to_json(chained)).value(), chained);
    EXPECT_EQ(walltime_change_from_json(R"({"schema":1,"walltime_minutes":210,"by":"ada@login1",)"
                                        R"("at":"1970-01-01T00:00:09Z"})")
                  .value(),
              change); // the format before chains existed
    EXPECT_FALSE(walltime_change_from_json("{\"schema\": 1}"));
    EXPECT_FALSE(walltime_change_from_json(""));
}

} // namespace
} // namespace gpuq
