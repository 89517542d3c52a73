// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/tar.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace gpuq::report {
namespace {

TEST(Tar, IsReadByTar)
{
    if (std::system("command -v tar >/dev/null") != 0) {
        GTEST_SKIP() << "tar is not installed";
    }
    std::string name = "/tmp/gpuq-tar-XXXXXX";
    ASSERT_GE(::mkstemp(name.data()), 0);
    const std::string big(1000, 'x');
    std::ofstream(name, std::ios::binary)
        << tar_of({{"r/a", "words\n"}, {"r/empty", ""}, {"r/big", big}}, Time{});
    const auto output_of = [](const std::string& command) {
        std::FILE* const pipe = ::popen(command.c_str(), "r");
        std::string text(4096, '\0');
        text.resize(std::fread(text.data(), 1, text.size(), pipe));
        EXPECT_EQ(::pclose(pipe), 0) << command;
        return text;
    };
    EXPECT_EQ(output_of("tar -tf " + name), "r/a\nr/empty\nr/big\n");
    EXPECT_EQ(output_of("tar -xOf " + name), "words\n" + big);
    EXPECT_EQ(output_of("tar -tvf " + name).substr(0, 10), "-rw-------");
    std::remove(name.c_str());
}

TEST(Tar, IsWholeBlocks)
{
    EXPECT_EQ(tar_of({}, Time{}).size(), 1024U);
    EXPECT_EQ(tar_of({{"a", std::string(512, 'x')}}, Time{}).size(), 2048U);
    EXPECT_EQ(tar_of({{"a", std::string(513, 'x')}}, Time{}).size(), 2560U);
}

} // namespace
} // namespace gpuq::report
