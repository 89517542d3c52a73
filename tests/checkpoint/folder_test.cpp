// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/folder.h"

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
std::vector<Seen> folder(const std::vector<Member>& files)
{
    std::vector<Seen> all;
    std::set<std::string> folders;
    for (const Member& file : files) {
        for (std::size_t at = file.name.find('/'); at != std::string::npos;
             at = file.name.find('/', at + 1)) {
            if (folders.insert(file.name.substr(0, at)).second) {
                all.push_back({Part{file.name.substr(0, at), Kind::folder, 0, Time()}});
            }
        }
        BytesInMemory bytes(file.data);
        all.push_back(see(Part{file.name, Kind::file, file.data.size(), Time()},
                          file.name.substr(file.name.rfind('/') + 1), bytes));
    }
    return all;
}

FolderJudgement judged_folder(const std::vector<Member>& files)
{
    return judge_folder(folder(files), /*is_all=*/true);
}

FolderJudgement wrong(const std::string& why, std::optional<std::uint64_t> step = std::nullopt)
{
    return {incomplete(why), step, ""};
}

FolderJudgement whole(std::optional<std::uint64_t> step = std::nullopt)
{
    return {{Says::whole, ""}, step, ""};
}

const FolderJudgement k_settles{{Says::settles, ""}, std::nullopt, ""};
const std::string k_index = R"({"weight_map": {"a": "model-1-of-2.safetensors",)"
                            R"( "b": "model-2-of-2.safetensors"}})";

/// The files that Hugging Face's Trainer writes.
std::vector<Member> trainer_folder()
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
    EXPECT_EQ(judged_folder(trainer_folder()), whole(1500));
}

TEST(TrainerFolder, LacksWhatItsIndexNames)
{
    EXPECT_EQ(
        judged_folder(without(trainer_folder(), "model-2-of-2.safetensors")),
        wrong("model.safetensors.index.json names model-2-of-2.safetensors, which does not exist",
              1500));
}

TEST(TrainerFolder, WithAFileThatIsCutOffIsIncomplete)
{
    const std::string cut = torch_file().substr(0, 100);
    EXPECT_EQ(judged_folder(with(trainer_folder(), {"optimizer.pt", cut})),
              wrong("optimizer.pt: its end is missing: it has no zip directory", 1500));
    EXPECT_EQ(judged_folder(with(trainer_folder(), {"optimizer.pt", ""})),
              wrong("optimizer.pt: it is empty", 1500));
    EXPECT_EQ(judged_folder(with(trainer_folder(), {"trainer_state.json", "{\"global_step\": 1"})),
              wrong("trainer_state.json: it is not valid JSON"));
}

TEST(TrainerFolder, ThatIsStillWrittenIsIncomplete)
{
    EXPECT_EQ(judged_folder(with(trainer_folder(), {"checkpoint-is-incomplete.txt", ""})),
              wrong("checkpoint-is-incomplete.txt is still present", 1500));
    EXPECT_EQ(judged_folder(with(trainer_folder(), {"tmp-1/a.pt", torch_file()})),
              wrong("tmp-1 is still present", 1500));
    EXPECT_EQ(judged_folder(without(trainer_folder(), "trainer_state.json")), k_settles);
}

TEST(TorchFolder, IsWholeWithItsMetadataAndIncompleteWithout)
{
    const std::vector<Member> files = {{".metadata", "\x80\2}q."}, {"__0_0.distcp", torch_file()}};
    EXPECT_EQ(judged_folder(files), whole());
    EXPECT_EQ(judged_folder(without(files, ".metadata")),
              wrong("__0_0.distcp exists, but no .metadata"));
    EXPECT_EQ(judged_folder({{"model/__0_0.distcp", torch_file()}}),
              wrong("model/__0_0.distcp exists, but no model/.metadata"));
}

TEST(MegatronFolder, StandsForTheIterationThatItsTrackerNames)
{
    const std::vector<Member> files = {
        {"iter_0000100/mp_rank_00/model.pt", torch_file()},
        {"iter_0000200/mp_rank_00/model.pt", torch_file().substr(0, 99)},
        {"latest_checkpointed_iteration.txt", "100\n"}};
    EXPECT_EQ(judged_folder(files), whole(100));
    EXPECT_EQ(judged_folder(with(files, {"latest_checkpointed_iteration.txt", "200"})),
              wrong("iter_0000200/mp_rank_00/model.pt: its end is missing: it has no zip directory",
                    200));
    EXPECT_EQ(judged_folder(with(files, {"latest_checkpointed_iteration.txt", "300"})),
              wrong("iter_0000200/mp_rank_00/model.pt: its end is missing: it has no zip directory",
                    300));
    EXPECT_EQ(
        judged_folder({{"latest_checkpointed_iteration.txt", "300"}}),
        wrong("latest_checkpointed_iteration.txt names iter_0000300, which does not exist", 300));
    EXPECT_EQ(judged_folder({{"latest_checkpointed_iteration.txt", "soon"}}),
              wrong("latest_checkpointed_iteration.txt: it contains no iteration number"));
}

TEST(DeepSpeedFolder, StandsForTheFolderThatLatestNames)
{
    const std::vector<Member> files = {{"global_step5/states.pt", torch_file()},
                                       {"latest", "global_step5"}};
    EXPECT_EQ(judged_folder(files), whole(5));
    EXPECT_EQ(judged_folder(with(files, {"latest", "global_step6"})),
              wrong("latest names global_step6, which does not exist", 6));
    EXPECT_EQ(judged_folder({{"a.npz", npz_file()}, {"latest", "../../etc"}}), k_settles);
    EXPECT_EQ(judged_folder({{"a.npz", npz_file()}, {"latest", "a note"}}), k_settles);
}

TEST(OrbaxFolder, IsWholeWhenNothingTemporaryIsLeft)
{
    const std::vector<Member> files = {{"_CHECKPOINT_METADATA", "{}"}, {"default/d/0", "data"}};
    EXPECT_EQ(judged_folder(files), whole());
    EXPECT_EQ(judged_folder(with(files, {"state.orbax-checkpoint-tmp-7/d", "data"})),
              wrong("state.orbax-checkpoint-tmp-7 is still present"));
}

TEST(AnyFolder, SettlesUnlessAFileInItSpeaksAgainstIt)
{
    EXPECT_EQ(judged_folder({{"a.npz", npz_file()}, {"notes", "text"}, {"done", ""}}), k_settles);
    EXPECT_EQ(judged_folder({{"a.npz", npz_file().substr(0, 20)}, {"b.npz", npz_file()}}),
              wrong("a.npz: its end is missing: it has no zip directory"));
    EXPECT_EQ(judged_folder({{"config.json", "{}"}, {"model.bin.tmp", "PK\3\4"}}),
              wrong("model.bin.tmp is still present"));
}

TEST(AnyFolder, WithNothingInItIsIncomplete)
{
    EXPECT_EQ(judged_folder({}), wrong("it is empty"));
    EXPECT_EQ(judged_folder({{"below/done", ""}}), wrong("it is empty"));
}

TEST(AnyFolder, ThatWasNotSeenInFullIsNeverProvedNorLacksAnything)
{
    const auto files = folder(without(trainer_folder(), "model-2-of-2.safetensors"));
    EXPECT_EQ(judge_folder(files, /*is_all=*/false),
              (FolderJudgement{{Says::settles, ""}, 1500, ""}));
}

TEST(AnyFolder, WithAFileThatCanNotBeReadSaysWhich)
{
    std::vector<Seen> files = folder(trainer_folder());
    files[4].error = EACCES;
    EXPECT_EQ(judge_folder(files, true).unreadable,
              "optimizer.pt can't be read: Permission denied");
}

TEST(HoldsSeveral, WhereATrackerOrFoldersOfManyStepsAre)
{
    const auto several = [](const std::vector<Member>& files) {
        std::vector<Part> parts;
        for (const Seen& one : folder(files)) {
            parts.push_back(one.part);
        }
        return holds_several(parts);
    };
    EXPECT_TRUE(several({{"global_step5/a", ""}, {"global_step6/a", ""}, {"latest", "?"}}));
    EXPECT_FALSE(several({{"checkpoint/a", ""}, {"latest", "checkpoint"}}));
    EXPECT_TRUE(several({{"latest_checkpointed_iteration.txt", "5"}}));
    EXPECT_TRUE(several({{"checkpoint-500/a", ""}, {"checkpoint-1000/a", ""}}));
    EXPECT_TRUE(several({{"500/a", ""}, {"1000.orbax-checkpoint-tmp-3/a", ""}}));
    EXPECT_FALSE(several(trainer_folder()));
    EXPECT_FALSE(several(with(trainer_folder(), {"latest", "global_step5"})));
    EXPECT_FALSE(several({{"mp_rank_00/a.pt", ""}, {"mp_rank_01/a.pt", ""}}));
    EXPECT_FALSE(several({{"pytorch_model_fsdp_0/a", ""}, {"optimizer_0/a", ""}}));
}

} // namespace
} // namespace gpuq::checkpoint
