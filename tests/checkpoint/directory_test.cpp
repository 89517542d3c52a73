// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/directory.h"

#include "checkpoint/bytes_in_memory.h"
#include "checkpoint/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace gpuq::checkpoint {
namespace {

using Says = Judgement::Says;

/// A directory with these files and their parent directories.
std::vector<ScannedFile> directory(const std::vector<Member>& files)
{
    std::vector<ScannedFile> all;
    std::set<std::string> directories;
    for (const Member& file : files) {
        for (std::size_t at = file.name.find('/'); at != std::string::npos;
             at = file.name.find('/', at + 1)) {
            if (directories.insert(file.name.substr(0, at)).second) {
                all.push_back({Part{file.name.substr(0, at), Kind::directory, 0, Time()}});
            }
        }
        BytesInMemory bytes(file.data);
        all.push_back(scan(Part{file.name, Kind::file, file.data.size(), Time()},
                           file.name.substr(file.name.rfind('/') + 1), bytes));
    }
    return all;
}

DirectoryJudgement judged_directory(const std::vector<Member>& files)
{
    return check_directory(directory(files), /*is_all=*/true);
}

DirectoryJudgement wrong(const std::string& why, std::optional<std::uint64_t> step = std::nullopt)
{
    return {incomplete(why), step, ""};
}

DirectoryJudgement whole(std::optional<std::uint64_t> step = std::nullopt)
{
    return {{Says::whole, ""}, step, ""};
}

const DirectoryJudgement k_settles{{Says::settles, ""}, std::nullopt, ""};
const std::string k_index = R"({"weight_map": {"a": "model-1-of-2.safetensors",)"
                            R"( "b": "model-2-of-2.safetensors"}})";

/// The files that Hugging Face's Trainer writes.
std::vector<Member> trainer_directory()
{
    return {{"config.json", "{}"},
            {"model-1-of-2.safetensors", safetensors_file()},
            {"model-2-of-2.safetensors", safetensors_file()},
            {"model.safetensors.index.json", k_index},
            {"optimizer.pt", torch_file()},
            {"trainer_state.json", R"({"global_step": 1500})"}};
}

std::vector<Member> without(std::vector<Member> files, const std::string& name)
{
    std::erase_if(files, [&](const Member& file) { return file.name == name; });
    return files;
}

std::vector<Member> with(std::vector<Member> files, const Member& file)
{
    files = without(std::move(files), file.name);
    files.push_back(file);
    return files;
}

TEST(TrainerFolder, IsWholeAndTellsItsStep)
{
    EXPECT_EQ(judged_directory(trainer_directory()), whole(1500));
}

TEST(TrainerFolder, LacksWhatItsIndexNames)
{
    EXPECT_EQ(
        judged_directory(without(trainer_directory(), "model-2-of-2.safetensors")),
        wrong("model.safetensors.index.json names model-2-of-2.safetensors, which does not exist",
              1500));
}

TEST(TrainerFolder, WithAFileThatIsCutOffIsIncomplete)
{
    const std::string cut = torch_file().substr(0, 100);
    EXPECT_EQ(judged_directory(with(trainer_directory(), {"optimizer.pt", cut})),
              wrong("optimizer.pt: its end is missing: it has no zip directory", 1500));
    EXPECT_EQ(judged_directory(with(trainer_directory(), {"optimizer.pt", ""})),
              wrong("optimizer.pt: it is empty", 1500));
    EXPECT_EQ(
        judged_directory(with(trainer_directory(), {"trainer_state.json", "{\"global_step\": 1"})),
        wrong("trainer_state.json: it is not valid JSON"));
}

TEST(TrainerFolder, ThatIsStillWrittenIsIncomplete)
{
    EXPECT_EQ(judged_directory(with(trainer_directory(), {"checkpoint-is-incomplete.txt", ""})),
              wrong("checkpoint-is-incomplete.txt is still present", 1500));
    EXPECT_EQ(judged_directory(with(trainer_directory(), {"tmp-1/a.pt", torch_file()})),
              wrong("tmp-1 is still present", 1500));
    EXPECT_EQ(judged_directory(without(trainer_directory(), "trainer_state.json")), k_settles);
}

TEST(TorchFolder, IsWholeWithItsMetadataAndIncompleteWithout)
{
    const std::vector<Member> files = {{".metadata", "\x80\2}q."}, {"__0_0.distcp", torch_file()}};
    EXPECT_EQ(judged_directory(files), whole());
    EXPECT_EQ(judged_directory(without(files, ".metadata")),
              wrong("__0_0.distcp exists, but no .metadata"));
    EXPECT_EQ(judged_directory({{"model/__0_0.distcp", torch_file()}}),
              wrong("model/__0_0.distcp exists, but no model/.metadata"));
}

TEST(MegatronFolder, StandsForTheIterationThatItsTrackerNames)
{
    const std::vector<Member> files = {
        {"iter_0000100/mp_rank_00/model.pt", torch_file()},
        {"iter_0000200/mp_rank_00/model.pt", torch_file().substr(0, 99)},
        {"latest_checkpointed_iteration.txt", "100\n"}};
    EXPECT_EQ(judged_directory(files), whole(100));
    EXPECT_EQ(judged_directory(with(files, {"latest_checkpointed_iteration.txt", "200"})),
              wrong("iter_0000200/mp_rank_00/model.pt: its end is missing: it has no zip directory",
                    200));
    EXPECT_EQ(judged_directory(with(files, {"latest_checkpointed_iteration.txt", "300"})),
              wrong("iter_0000200/mp_rank_00/model.pt: its end is missing: it has no zip directory",
                    300));
    EXPECT_EQ(
        judged_directory({{"latest_checkpointed_iteration.txt", "300"}}),
        wrong("latest_checkpointed_iteration.txt names iter_0000300, which does not exist", 300));
    EXPECT_EQ(judged_directory({{"latest_checkpointed_iteration.txt", "soon"}}),
              wrong("latest_checkpointed_iteration.txt: it contains no iteration number"));
}

TEST(DeepSpeedFolder, StandsForTheFolderThatLatestNames)
{
    const std::vector<Member> files = {{"global_step5/states.pt", torch_file()},
                                       {"latest", "global_step5"}};
    EXPECT_EQ(judged_directory(files), whole(5));
    EXPECT_EQ(judged_directory(with(files, {"latest", "global_step6"})),
              wrong("latest names global_step6, which does not exist", 6));
    EXPECT_EQ(judged_directory({{"a.npz", npz_file()}, {"latest", "../../etc"}}), k_settles);
    EXPECT_EQ(judged_directory({{"a.npz", npz_file()}, {"latest", "a note"}}), k_settles);
}

TEST(OrbaxFolder, IsWholeWhenNothingTemporaryIsLeft)
{
    const std::vector<Member> files = {{"_CHECKPOINT_METADATA", "{}"}, {"default/d/0", "data"}};
    EXPECT_EQ(judged_directory(files), whole());
    EXPECT_EQ(judged_directory(with(files, {"state.orbax-checkpoint-tmp-7/d", "data"})),
              wrong("state.orbax-checkpoint-tmp-7 is still present"));
}

TEST(AnyDirectory, SettlesUnlessAFileInItSpeaksAgainstIt)
{
    EXPECT_EQ(judged_directory({{"a.npz", npz_file()}, {"notes", "text"}, {"done", ""}}),
              k_settles);
    EXPECT_EQ(judged_directory({{"a.npz", npz_file().substr(0, 20)}, {"b.npz", npz_file()}}),
              wrong("a.npz: its end is missing: it has no zip directory"));
    EXPECT_EQ(judged_directory({{"config.json", "{}"}, {"model.bin.tmp", "PK\3\4"}}),
              wrong("model.bin.tmp is still present"));
}

TEST(AnyDirectory, WithNothingInItIsIncomplete)
{
    EXPECT_EQ(judged_directory({}), wrong("it is empty"));
    EXPECT_EQ(judged_directory({{"below/done", ""}}), wrong("it is empty"));
}

TEST(AnyDirectory, ThatWasNotSeenInFullIsNeverProvedNorLacksAnything)
{
    const auto files = directory(without(trainer_directory(), "model-2-of-2.safetensors"));
    EXPECT_EQ(check_directory(files, /*is_all=*/false),
              (DirectoryJudgement{{Says::settles, ""}, 1500, ""}));
}

TEST(AnyDirectory, WithAFileThatCanNotBeReadSaysWhich)
{
    std::vector<ScannedFile> files = directory(trainer_directory());
    files[4].error = EACCES;
    EXPECT_EQ(check_directory(files, true).unreadable,
              "optimizer.pt can't be read: Permission denied");
}

TEST(HoldsSeveral, WhereATrackerOrFoldersOfManyStepsAre)
{
    const auto several = [](const std::vector<Member>& files) {
        std::vector<Part> parts;
        for (const ScannedFile& one : directory(files)) {
            parts.push_back(one.part);
        }
        return holds_several(parts);
    };
    EXPECT_TRUE(several({{"global_step5/a", ""}, {"global_step6/a", ""}, {"latest", "?"}}));
    EXPECT_FALSE(several({{"checkpoint/a", ""}, {"latest", "checkpoint"}}));
    EXPECT_TRUE(several({{"latest_checkpointed_iteration.txt", "5"}}));
    EXPECT_TRUE(several({{"checkpoint-500/a", ""}, {"checkpoint-1000/a", ""}}));
    EXPECT_TRUE(several({{"500/a", ""}, {"1000.orbax-checkpoint-tmp-3/a", ""}}));
    EXPECT_FALSE(several(trainer_directory()));
    EXPECT_FALSE(several(with(trainer_directory(), {"latest", "global_step5"})));
    EXPECT_FALSE(several({{"mp_rank_00/a.pt", ""}, {"mp_rank_01/a.pt", ""}}));
    EXPECT_FALSE(several({{"pytorch_model_fsdp_0/a", ""}, {"optimizer_0/a", ""}}));
}

} // namespace
} // namespace gpuq::checkpoint
