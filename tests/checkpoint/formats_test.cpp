// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/formats.h"

#include "checkpoint/bytes_in_memory.h"
#include "checkpoint/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace gpuq::checkpoint {
namespace {

using Says = Judgement::Says;
using ::testing::HasSubstr;

const Judgement k_whole{Says::whole, ""};
const Judgement k_settled{Says::settles, ""};

/// Checks every proper prefix of a file.
void expect_no_truncation_is_whole(const std::string& file, std::string_view name)
{
    for (std::size_t size = 0; size < file.size(); ++size) {
        const Judgement judgement = judged(file.substr(0, size), name);
        EXPECT_EQ(judgement.says, Says::incomplete) << name << " of " << size << " bytes";
        EXPECT_FALSE(judgement.why.empty());
    }
}

TEST(Zip, OfTorchAndOfNumpyIsWhole)
{
    EXPECT_EQ(judged(torch_file(), "model.pt"), k_whole);
    EXPECT_EQ(judged(npz_file(), "epoch-1.npz"), k_whole);
    EXPECT_EQ(judged(npz_file(), "no ending"), k_whole);
}

TEST(Zip, IsIncompleteWhereverItEnds)
{
    expect_no_truncation_is_whole(torch_file(), "model.pt");
    expect_no_truncation_is_whole(npz_file(), "epoch-1.npz");
    expect_no_truncation_is_whole(npz_file(), "no ending");
}

TEST(Zip, WithAnotherInsideIsIncompleteWhereTheInnerOneEnds)
{
    const std::string file = zip_of({{"inner.zip", npz_file()}, {"last", "data"}});
    EXPECT_EQ(judged(file, "model.pt"), k_whole);
    expect_no_truncation_is_whole(file, "model.pt");
}

TEST(Zip, MayEndWithAComment)
{
    const std::string file = zip_of({{"a", "data"}}, Zip64::no, "written by PK\5\6 hand");
    EXPECT_EQ(judged(file, "model.pt"), k_whole);
    EXPECT_EQ(judged(file + "more", "model.pt").says, Says::incomplete);
}

TEST(Zip, WithoutAFileInItIsNoCheckpoint)
{
    EXPECT_EQ(judged(zip_of({}), "a.npz"), incomplete("it is an empty zip archive"));
}

TEST(Zip, WithAHoleWhereAFileShouldBeginIsIncomplete)
{
    std::string file = torch_file();
    file.replace(file.find("PK\3\4", 4), 4, 4, '\0');
    EXPECT_THAT(judged(file, "model.pt").why, HasSubstr("named in its zip directory is missing"));
}

TEST(Zip, WithAFileThatWouldReachIntoItsDirectoryIsIncomplete)
{
    for (const std::uint64_t size : {11ULL, 0xfffffffeULL}) {
        std::string file = npz_file("0123456789");
        file.replace(file.find("PK\1\2") + 20, 4, little(size + 100, 4));
        EXPECT_EQ(judged(file, "a.npz"),
                  incomplete("an entry of its zip directory does not match the file"));
    }
}

TEST(Zip, WithMoreInItThanItsEndSaysIsIncomplete)
{
    std::string file = npz_file();
    file.insert(file.find("PK\5\6"), "more");
    EXPECT_EQ(judged(file, "a.npz"), incomplete("its zip directory is not at the recorded offset"));
}

TEST(Zip, IsReadAtItsTailOnly)
{
    BytesInMemory bytes(zip_of({{"a", std::string(8 << 20, 'a')}, {"b", "b"}}));
    EXPECT_EQ(check_completeness(bytes, "model.pt"), k_whole);
    EXPECT_LT(bytes.bytes_read, 70'000U);
}

TEST(Safetensors, IsWholeWhenItsTensorsFillIt)
{
    EXPECT_EQ(judged(safetensors_file(), "model.safetensors"), k_whole);
    EXPECT_EQ(judged(safetensors_file(), "model"), k_whole);
    EXPECT_EQ(judged(safetensors_file("{}", 0), "model.safetensors"), k_whole);
    EXPECT_EQ(judged(safetensors_file() + "more", "model.safetensors"),
              incomplete("24 bytes of tensors are present, not 20"));
}

TEST(Safetensors, IsIncompleteWhereverItEnds)
{
    expect_no_truncation_is_whole(safetensors_file(), "model.safetensors");
}

TEST(Safetensors, WithImpossibleNumbersIsIncomplete)
{
    for (const char* offsets : {"[8,0]", "[0]", "[0,4,8]", "[-1,8]", "[0,8.0]", "[0,\"8\"]",
                                "[0,99999999999999999999999]", "[0,18446744073709551615]", "8"}) {
        const std::string header =
            std::string(R"({"a":{"dtype":"F32","data_offsets":)") + offsets + "}}";
        EXPECT_EQ(judged(safetensors_file(header, 8), "a.safetensors").says, Says::incomplete)
            << offsets;
    }
    const std::string huge = little(~0ULL, 8) + "{" + std::string(100, ' ');
    EXPECT_EQ(judged(huge, "a.safetensors").says, Says::incomplete);
    const std::string deep = safetensors_file(std::string(1 << 20, '[') + "{", 0);
    EXPECT_EQ(judged(deep, "a.safetensors").says, Says::incomplete);
    const std::string deep_inside = safetensors_file("{\"a\":" + std::string(1 << 20, '['), 0);
    EXPECT_EQ(judged(deep_inside, "a.safetensors").says, Says::incomplete);
}

TEST(Npy, IsWholeWhenItsShapeFillsIt)
{
    EXPECT_EQ(judged(npy_file("'<f4'", "(3, 4)", 48), "a.npy"), k_whole);
    EXPECT_EQ(judged(npy_file("'<U3'", "(2,)", 24), "a.npy"), k_whole);
    EXPECT_EQ(judged(npy_file("'<M8[ns]'", "(1,)", 8), "a"), k_whole);
    EXPECT_EQ(judged(npy_file("'|b1'", "()", 1), "a.npy"), k_whole);
    EXPECT_EQ(judged(npy_file("'<f8'", "(0, 3)", 0), "a.npy"), k_whole);
}

TEST(Npy, IsIncompleteWhereverItEnds)
{
    expect_no_truncation_is_whole(npy_file("'<f4'", "(3, 4)", 48), "a.npy");
}

TEST(Npy, SettlesWhereItsSizeCanNotBeKnown)
{
    EXPECT_EQ(judged(npy_file("[('a', '<f4'), ('b', '<i8')]", "(3,)", 36), "a.npy"), k_settled);
    EXPECT_EQ(judged(npy_file("'|O'", "(1,)", 8) + ".", "a.npy"), k_settled);
    EXPECT_EQ(judged(npy_file("'|O'", "(1,)", 8), "a.npy").says, Says::incomplete);
    EXPECT_EQ(judged(npy_file("'<f4'", "(1,)", 8), "two arrays.npy"), k_settled);
}

TEST(Npy, WithImpossibleNumbersIsIncomplete)
{
    const std::string large = "(4294967296, 4294967296, 4294967296)";
    EXPECT_EQ(judged(npy_file("'<f4'", large, 48), "a.npy").says, Says::incomplete);
    EXPECT_EQ(judged(npy_file("'<f4'", "(-1,)", 48), "a.npy").says, Says::incomplete);
    EXPECT_EQ(judged(npy_file("'<f4'", "(3", 48), "a.npy").says, Says::incomplete);
}

TEST(Hdf5, SettlesWhenItIsAsLongAsItSays)
{
    for (const int version : {0, 1, 2, 3}) {
        const std::string file = hdf5_file(version, 120);
        EXPECT_EQ(judged(file, "a.h5"), k_settled) << version;
        EXPECT_EQ(judged(file + "preallocated", "a"), k_settled) << version;
        expect_no_truncation_is_whole(file, "a.h5");
    }
}

TEST(Hdf5, IsFoundBehindAUserBlock)
{
    EXPECT_EQ(judged(std::string(1024, 'u') + hdf5_file(0, 120), "a.hdf5"), k_settled);
    EXPECT_EQ(judged(std::string(5000, 'u'), "a.hdf5"), incomplete("it has no HDF5 signature"));
}

TEST(Hdf5, ThatItsWriterHasNotClosedIsIncomplete)
{
    std::string file = hdf5_file(3, 120);
    file[11] = '\1';
    EXPECT_THAT(judged(file, "a.h5").why, HasSubstr("was not closed"));
    file = hdf5_file(0, 120);
    file.replace(40, 8, 8, '\xff'); // end of file not known yet
    EXPECT_EQ(judged(file, "a.h5").says, Says::incomplete);
}

TEST(Pickle, SettlesWhenItEndsAsOne)
{
    EXPECT_EQ(judged("\x80\2}q.", "a.pkl"), k_settled);
    EXPECT_EQ(judged("\x80\2}q", "a.pkl"), incomplete("its pickle data has no end marker"));
    EXPECT_EQ(judged(old_torch_file(), "a.pt"), k_settled);
    EXPECT_EQ(judged(std::string("\x80\2\0\0\xe0\1\0\0", 8), "640x480.raw").says, Says::unknown);
}

TEST(Judge, KnowsWhatAnEndingPromises)
{
    EXPECT_EQ(judged("text", "a.npz"), incomplete("it does not begin as a zip archive"));
    EXPECT_EQ(judged(std::string(9, '\0'), "a.pt"), incomplete("it begins with zeros"));
    EXPECT_EQ(judged(std::string(9, '\0'), "a.raw").says, Says::unknown);
    EXPECT_EQ(judged("", "a.raw"), incomplete("it is empty"));
    EXPECT_TRUE(is_data_name("model.safetensors"));
    EXPECT_FALSE(is_data_name("config.json"));
}

TEST(Judge, SaysWhenAFileCanNotBeRead)
{
    BytesInMemory bytes(torch_file());
    bytes.is_broken = true;
    EXPECT_NE(check_completeness(bytes, "a.pt").says, Says::whole);
    EXPECT_EQ(bytes.error(), EIO);
}

TEST(Judge, SurvivesWhateverTheBytesAre)
{
    const std::vector<std::pair<std::string, std::string>> files = {
        {torch_file(), "a.pt"},
        {npz_file(), "a.npz"},
        {safetensors_file(), "a.safetensors"},
        {npy_file("'<f4'", "(3, 4)", 48), "a.npy"},
        {hdf5_file(0, 120), "a.h5"},
        {hdf5_file(3, 120), "a.h5"}};
    std::mt19937 random(1);
    for (int round = 0; round < 20'000; ++round) {
        auto [file, name] = files[random() % files.size()];
        for (int change = 0; change < 1 + round % 8; ++change) {
            const auto byte = random() % 3 == 0 ? 0xffU : static_cast<unsigned>(random() & 0xff);
            file[random() % file.size()] = static_cast<char>(byte);
        }
        file.resize(random() % 4 == 0 ? random() % file.size() : file.size());
        BytesInMemory bytes(file);
        const Judgement judgement = check_completeness(bytes, name);
        EXPECT_EQ(judgement.says == Says::incomplete, !judgement.why.empty());
        EXPECT_LT(bytes.bytes_read, 10'000U);
    }
}

} // namespace
} // namespace gpuq::checkpoint
