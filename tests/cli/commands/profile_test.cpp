// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "ports/job.h"
#include "runs/run_on_disk.h"
#include "telemetry/event_bytes.h"
#include "telemetry/ledger.h"
#include "telemetry/sample_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A sample file as a node writes it, second by second.
class SampledNode {
public:
    SampledNode(Time began, const std::string& name, const std::string& model)
        : m_began(began)
        , m_writer({began, name, {{"GPU-7", model, ""}}, 4})
    {
        put(m_writer.header());
    }
    SampledNode& then_runs(std::chrono::seconds time, const GpuSample& gpu, double cores)
    {
        for (auto i = 0s; i < time; i += 1s) {
            m_elapsed += 1s;
            m_cpu += cores * 1000;
            Sample sample;
            sample.at = m_began + m_elapsed;
            sample.elapsed = m_elapsed;
            sample.stands_for = 1s;
            sample.gpus = {gpu};
            sample.run[RunMetric::cpu] = Reading::of(static_cast<std::uint64_t>(m_cpu));
            sample.run[RunMetric::memory] = Reading::of(std::uint64_t{3} << 30);
            m_time += gpu_time_between(1s, sample.gpus);
            sample.gpu_time = m_time;
            for (const Piece& piece : m_writer.add(sample)) {
                put(piece);
            }
        }
        return *this;
    }
    const std::string& bytes() const { return m_bytes; }

private:
    void put(const Piece& piece)
    {
        m_bytes.resize(std::max<std::size_t>(m_bytes.size(), piece.offset + piece.bytes.size()));
        m_bytes.replace(piece.offset, piece.bytes.size(), piece.bytes);
    }

    Time m_began;
    SampleWriter m_writer;
    std::string m_bytes;
    std::chrono::milliseconds m_elapsed{0};
    double m_cpu = 0;
    GpuTime m_time;
};

GpuSample busy_gpu(std::uint64_t percent)
{
    GpuSample gpu = GpuSample::unknown(Unknown::not_supported);
    gpu[GpuMetric::busy] = Reading::of(percent * 100);
    gpu[GpuMetric::memory_used] = Reading::of(percent > 0 ? 2 << 20 : 0);
    gpu[GpuMetric::memory_total] = Reading::of(80 << 20);
    gpu[GpuMetric::power] = Reading::of(143'200);
    return gpu;
}

class Profile : public testing::Test {
protected:
    FakeServices m_services;
    std::filesystem::path m_dir;

    Profile()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
        std::string dir = testing::TempDir() + "/gpuq_profile_XXXXXX";
        m_dir = ::mkdtemp(dir.data());
    }
    ~Profile() override { std::filesystem::remove_all(m_dir); }

    Time now() { return m_services.time.now(); }

    /// A run that started eleven minutes ago.
    RunOnDisk run(const std::string& name = "train")
    {
        gpuq::Run record = fakes::some_run(now() - 15min, name);
        record.request.memory_mib = 64 << 10;
        return RunOnDisk(m_services.memory, record)
            .submitted(JobId{8})
            .started(JobId{8}, now() - 11min);
    }
    void sampled(const RunOnDisk& run, const SampledNode& node, const std::string& name = "node1")
    {
        const std::string directory = layout::link_dir(run.key(), LinkNumber{1});
        ASSERT_TRUE(m_services.memory.write(directory + "/samples-" + name, node.bytes()));
    }
    SampledNode hungry(const std::string& name = "node1", const std::string& model = "A100")
    {
        SampledNode node(now() - 11min, name, model);
        node.then_runs(60s, busy_gpu(0), 1).then_runs(480s, busy_gpu(30), 3.9);
        return node;
    }
    Use profile(const std::vector<std::string>& arguments, const Globals& globals = {})
    {
        return use(k_profile_verb, m_services, arguments, globals);
    }
    static std::string content(const std::filesystem::path& path)
    {
        std::ifstream stream(path);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
};

TEST_F(Profile, TellsWhereTheTimeWentAndWhatToChange)
{
    RunOnDisk one = run();
    one.ended({0, Cause::finished, "", now() - 1min});
    sampled(one, hungry());
    const Use outcome = profile({"train"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ("\n" + outcome.out, R"(
run 8 (train)
  state       ended with status 0
  ran         07:49:00 to 07:59:00 on node1, 1 GPU (A100)

GPU time                  0:10:00  100.0 %  allocated: elapsed time x GPUs
  busy                    0:02:24   24.0 %
  idle                    0:06:36   66.0 %
    start-up              0:01:00   10.0 %  GPU idle before its first work
    waiting for data      0:05:36   56.0 %  GPU idle while CPUs or disk work
  unknown                 0:01:00   10.0 %

MEASURE     UNIT    MIN  MEAN   P95   MAX  KNOWN
GPU busy    %         0    27    30    30   90 %
GPU memory  GiB     0.0   1.8   2.0   2.0   90 %
GPU power   W       143   143   143   143   90 %
CPU         cores  1.00  3.56  3.90  3.90   90 %
RAM         GiB    3.00  3.00  3.00  3.00   90 %

unknown (not measured): disk read, disk written, network in, whole node, network
out, whole node
unknown (not measured by this GPU): GPU temperature, GPU clock, PCIe to the GPU,
PCIe from the GPU, NVLink received, NVLink sent, GPU cores active, tensor cores
active, GPU memory active

advice
  - The GPU waits 62 % of the time while the CPUs or the disk work: more workers
    of the data loader, a faster disk or data prepared beforehand may help
  - GPU memory: 2.0 of 80 GiB used at most: a smaller GPU would do (-g 3G+), or
    larger batches
  - RAM: 5 % of the 64 GiB that were asked for used at most: --mem 5G would do
)");
    EXPECT_THAT(m_services.slurm.requests, IsEmpty());
}

TEST_F(Profile, FitsATerminalOf80Columns)
{
    RunOnDisk one = run(std::string(40, 'x'));
    one.ended({137, Cause::memory, std::string(90, 'y') + " z", now() - 1min});
    sampled(one, hungry("a-node-with-quite-a-long-name.example.org", "NVIDIA H100 80GB HBM3"));
    std::istringstream lines(profile({"8"}).out);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 80U) << line;
    }
}

TEST_F(Profile, OfARunningRunTellsWhatItDidSoFar)
{
    RunOnDisk one = run();
    one.beat(JobId{8}, now() - 1s);
    sampled(one, hungry());
    const Use outcome = profile({"train"});
    EXPECT_THAT(outcome.out, HasSubstr("  state       running\n"
                                       "  ran         07:49:00 to now on node1, 1 GPU (A100)\n"));
    EXPECT_THAT(outcome.out, HasSubstr("\nGPU time                  0:11:00  100.0 %"));
}

TEST_F(Profile, WithoutADriverNothingIsMadeUp)
{
    RunOnDisk one = run();
    one.ended({0, Cause::finished, "", now() - 1min});
    SampledNode node(now() - 11min, "node1", "");
    sampled(one, node.then_runs(540s, GpuSample::unknown(Unknown::no_driver), 3.9));
    const std::string text = profile({"train"}).out;
    EXPECT_THAT(text, HasSubstr("\n  busy                    0:00:00    0.0 %\n"
                                "  idle                    0:00:00    0.0 %\n"
                                "  unknown                 0:10:00  100.0 %\n"));
    EXPECT_THAT(text, HasSubstr("\nunknown (no NVIDIA driver on the node): GPU busy, GPU memory"));
    EXPECT_THAT(text, Not(HasSubstr("The GPU")));
    const std::string page = profile({"--html", "-", "train"}).out;
    EXPECT_THAT(page, Not(HasSubstr("<h2>GPU busy</h2>")));
    EXPECT_THAT(page, HasSubstr("<h2>CPU</h2>"));
    EXPECT_THAT(page, HasSubstr("no NVIDIA driver on the node"));
}

TEST_F(Profile, WithoutSamplesTellsWhatIsKnown)
{
    RunOnDisk one = run();
    one.ended({0, Cause::finished, "", now() - 1min});
    EXPECT_EQ("\n" + profile({"train"}).out, R"(
run 8 (train)
  state       ended with status 0
  ran         07:49:00 to 07:59:00, 1 GPU
  measured    no samples: nothing was measured, so all of the GPU time is
              unknown

GPU time                  0:10:00  100.0 %  allocated: elapsed time x GPUs
  busy                    0:00:00    0.0 %
  idle                    0:00:00    0.0 %
  unknown                 0:10:00  100.0 %
)");
    const Use page = profile({"--html", "-", "train"});
    EXPECT_EQ(page.status, 0);
    EXPECT_THAT(page.out, HasSubstr("no samples: nothing was measured"));
    // A file in another format adds no samples.
    const std::string directory = layout::link_dir(one.key(), LinkNumber{1});
    ASSERT_TRUE(m_services.memory.write(directory + "/samples-node1", std::string(9000, '\x1b')));
    EXPECT_THAT(profile({"train"}).out, HasSubstr("no samples"));
}

TEST_F(Profile, ARunThatWaitsHasNone)
{
    RunOnDisk(m_services.memory, fakes::some_run(now() - 1min, "late")).submitted(JobId{9});
    Job waiting;
    waiting.id = JobId{9};
    waiting.state = JobState::pending;
    m_services.slurm.jobs.push_back(waiting);
    for (const auto& arguments : {std::vector<std::string>{"late"}, {"--html", "-", "late"}}) {
        const Use outcome = profile(arguments);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_THAT(outcome.out, HasSubstr("the run has not started"));
    }
    Globals json;
    json.json = true;
    EXPECT_THAT(profile({"late"}, json).out, HasSubstr("\"from\": null"));
}

TEST_F(Profile, TellsScriptsTheSame)
{
    RunOnDisk one = run();
    one.ended({0, Cause::finished, "", now() - 1min});
    sampled(one, hungry());
    Globals json;
    json.json = true;
    const std::string document = profile({"train"}, json).out;
    for (const char* part :
         {R"("allocated_seconds": 600)", R"("busy_seconds": 144)", R"("idle_seconds": 396)",
          R"("unknown_seconds": 60)", R"("start_up_seconds": 60)",
          R"("waiting_for_data_seconds": 336)", R"("other_idle_seconds": 0)",
          R"("name": "gpu_busy_percent")", R"("unknown": "not_supported")",
          R"("code": "waits_for_data")", R"("nodes": [)"}) {
        EXPECT_THAT(document, HasSubstr(part));
    }
}

TEST_F(Profile, WritesAPageOfItsOwn)
{
    RunOnDisk one = run();
    one.ended({0, Cause::finished, "", now() - 1min});
    sampled(one, hungry());
    const auto file = m_dir / "p.html";
    const Use outcome = profile({"--html", file, "train"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("advice"));
    EXPECT_EQ(outcome.err, "gpuq: wrote " + file.string() + "\n");
    const std::string page = content(file);
    EXPECT_EQ(profile({"--html", "-", "train"}).out, page);
    EXPECT_TRUE(page.ends_with("</body>\n</html>\n"));
    for (const char* title : {"Where the GPU time went", "GPU busy", "GPU memory", "CPU", "RAM"}) {
        EXPECT_THAT(page, HasSubstr(std::string("<h2>") + title + "</h2>"));
    }
    for (const char* none : {"nan", "inf\"", "http://", "https://", "url(", "<script", "link 1"}) {
        EXPECT_THAT(page, Not(HasSubstr(none)));
    }
    EXPECT_THAT(page, HasSubstr("Gaps: unknown 10 % of the time (no samples)."));
}

TEST_F(Profile, MarksTheLinksOfAChain)
{
    RunOnDisk one = run();
    const LinkNumber second{2};
    sampled(one, hungry());
    Event end;
    end.kind = Event::Kind::ended;
    end.at = now() - 2min;
    end.status = 0;
    end.cause = Cause::time_limit;
    end.continues = true;
    one.event(end);
    Event begun;
    begun.kind = Event::Kind::supervisor_started;
    begun.at = now() - 90s;
    begun.job = 9;
    begun.host = "node2";
    end.at = now();
    end.cause = Cause::finished;
    end.continues = false;
    ASSERT_TRUE(m_services.memory.write(layout::job_json(one.key(), second),
                                        to_json(LinkJob{"lab", JobId{9}, now() - 2min, true})));
    ASSERT_TRUE(
        m_services.memory.write(layout::journal(one.key(), second), to_line(begun) + to_line(end)));
    SampledNode node(now() - 90s, "node2", "A100");
    ASSERT_TRUE(m_services.memory.write(layout::link_dir(one.key(), second) + "/samples-node2",
                                        node.then_runs(85s, busy_gpu(90), 1).bytes()));
    std::string bytes;
    for (const auto& [step, ago] : {std::pair{1, 600s}, {2, 300s}, {3, 80s}, {4, 20s}}) {
        const auto at = std::chrono::duration<double>((now() - ago).time_since_epoch()).count();
        bytes += telemetry::events::simple(at, step, "loss", 1.F / static_cast<float>(step));
    }
    m_services.on_disk.directories["/home/ada"]["events.out.tfevents.1"] = {bytes, now() - 10s};
    const std::string text = profile({"train"}).out;
    EXPECT_THAT(text, HasSubstr("  ran         07:49:00 to 08:00:00 on 2 nodes, 1 GPU (A100), 2 "
                                "links\n"));
    EXPECT_THAT(text, HasSubstr("GPU time                  0:10:30"));
    const std::string page = profile({"--html", "-", "train"}).out;
    EXPECT_THAT(page, HasSubstr(">link 1</text>"));
    EXPECT_THAT(page, HasSubstr(">link 2</text>"));
    EXPECT_THAT(page, HasSubstr("<h2>Links</h2>"));
    // The loss curve has one segment per link, not connected.
    const std::size_t loss = page.find("class=\"line line0\"", page.find("<h2>Loss</h2>"));
    ASSERT_NE(loss, std::string::npos);
    const std::string path = page.substr(loss, page.find("/>", loss) - loss);
    EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 2) << path;
}

TEST_F(Profile, NothingFromOutsideIsTakenForThePage)
{
    const std::string evil = "<script>\"'&</script>\x1b]0;x\x07\u202e";
    gpuq::Run record = fakes::some_run(now() - 15min, "n" + evil);
    record.request.program = {evil};
    record.request.nodes = 2;
    RunOnDisk one(m_services.memory, record);
    one.submitted(JobId{8}).started(JobId{8}, now() - 11min);
    one.ended({0, Cause::finished, evil, now() - 1min});
    sampled(one, hungry("a" + evil, evil), "a");
    sampled(one, hungry("b" + evil, evil), "b");
    std::string bytes;
    for (int step = 1; step <= 50; ++step) {
        const auto at = std::chrono::duration<double>((now() - 5min).time_since_epoch()).count();
        bytes += telemetry::events::simple(at + step, step, "loss" + evil,
                                           1.F / static_cast<float>(step));
    }
    m_services.on_disk.directories["/home/ada"]["events.out.tfevents.1"] = {bytes, now() - 2min};
    const Use page = profile({"--html", "-", "8"});
    EXPECT_EQ(page.status, 0) << page.err;
    EXPECT_THAT(page.out, HasSubstr("<h2>Loss</h2>"));
    EXPECT_THAT(page.out, HasSubstr("&lt;script&gt;&quot;&#39;&amp;&lt;/script&gt;"));
    for (const char* raw : {"<script", "\x1b", "\x07", "\u202e"}) {
        EXPECT_THAT(page.out, Not(HasSubstr(raw)));
    }
    const Use text = profile({"8"});
    for (const char* raw : {"\x1b", "\x07", "\u202e"}) {
        EXPECT_THAT(text.out + text.err, Not(HasSubstr(raw)));
    }
    Globals json;
    json.json = true;
    EXPECT_THAT(profile({"8"}, json).out, Not(HasSubstr("\x1b")));
}

TEST_F(Profile, SaysWhatIsWrongWithTheWords)
{
    EXPECT_EQ(profile({}).status, 2);
    EXPECT_EQ(profile({"a", "b"}).status, 2);
    EXPECT_EQ(profile({"nobody"}).status, 2);
    Globals json;
    json.json = true;
    EXPECT_EQ(profile({"--html", "-", "x"}, json).status, 2);
    EXPECT_THAT(profile({"--html", m_dir / "no" / "p.html", "x"}).err,
                HasSubstr("no/p.html: No such file or directory"));
}

} // namespace
} // namespace gpuq::cli
