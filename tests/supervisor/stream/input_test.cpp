// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/input.h"

#include "io/descriptor.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace gpuq::supervisor {
namespace {

class InputCount : public testing::Test {
protected:
    InputCount()
        : m_pipe(*make_pipe())
    {
        set_nonblocking(m_pipe.write.get());
        m_input.open(&m_pipe.write);
    }

    std::string read(std::size_t size)
    {
        std::string bytes(size, '\0');
        bytes.resize(static_cast<std::size_t>(
            std::max<ssize_t>(::read(m_pipe.read.get(), bytes.data(), size), 0)));
        return bytes;
    }

    Pipe m_pipe;
    InputBuffer m_input;
};

TEST_F(InputCount, IsCountedAsReadWhenTheProgramHasReadIt)
{
    ASSERT_TRUE(m_input.take(0, "one\ntwo\n"));
    EXPECT_EQ(m_input.read_by_program(), 0U);
    EXPECT_EQ(read(4), "one\n");
    EXPECT_EQ(m_input.read_by_program(), 4U);
    m_input.give_up();
    EXPECT_EQ(m_input.read_by_program(), 4U);
}

TEST_F(InputCount, IsCountedAlsoAfterItsEnd)
{
    ASSERT_TRUE(m_input.take(0, "one\ntwo\n"));
    ASSERT_TRUE(m_input.end(8));
    EXPECT_TRUE(m_input.closed());
    EXPECT_EQ(m_input.read_by_program(), 0U);
    EXPECT_EQ(read(4), "one\n");
    EXPECT_EQ(m_input.read_by_program(), 4U);
    EXPECT_EQ(read(100), "two\n");
    EXPECT_EQ(read(100), ""); // end of file
    EXPECT_EQ(m_input.read_by_program(), 8U);
}

TEST_F(InputCount, ThatDoesNotFitIntoThePipeIsNotRead)
{
    const std::string much(300'000, 'x');
    ASSERT_TRUE(m_input.take(0, much));
    ASSERT_TRUE(m_input.end(much.size()));
    EXPECT_EQ(m_input.read_by_program(), 0U);
    EXPECT_EQ(read(1000).size(), 1000U);
    EXPECT_EQ(m_input.read_by_program(), 1000U);
    m_input.give_up();
    EXPECT_EQ(m_input.read_by_program(), 1000U);
}

} // namespace
} // namespace gpuq::supervisor
