// SPDX-License-Identifier: GPL-2.0-or-later
#include "ports/job.h"
#include "supervisor/stage.h"
#include "telemetry/sample_file.h"

#include <gmock/gmock.h>

/// The supervisor's notes about GPU use in its job's comment.
namespace gpuq::supervisor {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// A run with two GPUs and samples written by the test.
class Measured : public Stage {
public:
    explicit Measured(const std::string& program)
        : Stage({"/bin/sh", "-c", program})
    {
        run.request.gpus.count = 2;
        options.sampler = "/bin/true";
        options.patience.sampling = 10ms;
        options.patience.noted_from = 0ms;
    }
    void measure(GpuTime time) const
    {
        SampleWriter writer({Time{}, "n1", {GpuName{}, GpuName{}}});
        Sample sample;
        sample.elapsed = sample.stands_for = 1s;
        sample.gpu_time = time;
        sample.gpus.resize(2);
        std::string bytes;
        const auto write = [&](const Piece& piece) {
            bytes.resize(std::max<std::size_t>(bytes.size(), piece.offset + piece.bytes.size()));
            bytes.replace(piece.offset, piece.bytes.size(), piece.bytes);
        };
        write(writer.header());
        for (const Piece& piece : writer.add(sample)) {
            write(piece);
        }
        put(link_file("samples-n1"), bytes);
    }
    std::string comment() const { return job_comment(run.key); }
};

TEST(UseNote, IsMadeOnceAtTheEnd)
{
    Measured stage("sleep 1.2");
    Client client = stage.begin();
    stage.awaited(Event::Kind::program_started);
    stage.measure({1s, 1s, 0s});
    EXPECT_THAT(stage.slurm_calls(), Not(HasSubstr("note")));
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(stage.wait(), 0);
    EXPECT_THAT(stage.slurm_calls(), ContainsRegex("^note 42 " + stage.comment() +
                                                   " busy=1 idle=1 unknown=[0-9]+\n"
                                                   "complete 42 0\n$"));
}

TEST(UseNote, IsNotMadeOfNothing)
{
    Measured unknown("sleep 0.3");
    Client client = unknown.begin();
    unknown.awaited(Event::Kind::program_started);
    unknown.measure({0s, 0s, 2s});
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    unknown.wait();
    EXPECT_THAT(unknown.slurm_calls(), Not(HasSubstr("note")));

    Measured shorter("sleep 0.3");
    shorter.options.patience.noted_from = 2s;
    Client other = shorter.begin();
    shorter.awaited(Event::Kind::program_started);
    shorter.measure({1s, 0s, 0s});
    ASSERT_TRUE(other.reads_to_the_end());
    other.close_all();
    shorter.wait();
    EXPECT_THAT(shorter.slurm_calls(), Not(HasSubstr("note")));
}

TEST(UseNote, HoldsUpNobodyWhenSlurmDoesNotAnswer)
{
    Measured stage("sleep 0.3");
    stage.options.patience.noting = 700ms;
    stage.slurm("slow", "");
    Client client = stage.begin();
    stage.awaited(Event::Kind::program_started);
    stage.measure({1s, 0s, 0s});
    ASSERT_TRUE(client.reads_to_the_end());
    client.close_all();
    EXPECT_EQ(stage.wait(), 0);
    EXPECT_THAT(stage.slurm_calls(), HasSubstr("note 42 "));
    EXPECT_THAT(stage.slurm_calls(), HasSubstr("complete 42 0"));
}

TEST(UseNote, OfAJobThatSlurmHasEndedIsForItsRecord)
{
    Measured stage("sleep 20");
    stage.slurm("state", std::to_string(static_cast<int>(JobState::cancelled)));
    Client client = stage.begin();
    stage.awaited(Event::Kind::program_started);
    stage.measure({1s, 0s, 0s});
    ::poll(nullptr, 0, 200); // until the sampler was started
    ::kill(stage.supervisor(), SIGTERM);
    ASSERT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.cause, Cause::cancelled);
    client.close_all();
    stage.wait();
    EXPECT_THAT(stage.slurm_calls(), HasSubstr("late note 42 " + stage.comment() + " busy="));
}

} // namespace
} // namespace gpuq::supervisor
