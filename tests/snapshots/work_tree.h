// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/subprocess.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace gpuq::testing {

/// A directory with files, removed at the end.
class WorkTree {
public:
    WorkTree()
    {
        std::string path = ::testing::TempDir() + "gpuq-snapshot-XXXXXX";
        EXPECT_NE(::mkdtemp(path.data()), nullptr);
        m_path = path;
    }
    WorkTree(const WorkTree&) = delete;
    WorkTree& operator=(const WorkTree&) = delete;
    ~WorkTree() { std::filesystem::remove_all(m_path); }

    const std::string& path() const { return m_path; }

    void write(const std::string& name, const std::string& content, bool executable = false) const
    {
        const std::filesystem::path path = m_path + "/" + name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << content;
        if (executable) {
            std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        }
    }

    std::string read(const std::string& name) const
    {
        std::ifstream file(m_path + "/" + name);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    void remove(const std::string& name) const { std::filesystem::remove_all(m_path + "/" + name); }

    /// Runs git in the directory; fails the test if git fails.
    void git(const std::vector<std::string>& arguments) const
    {
        Subprocess plan{.argv = {"git", "-C", m_path, "-c", "user.name=a", "-c", "user.email=a@b",
                                 "-c", "protocol.file.allow=always"}};
        plan.argv.insert(plan.argv.end(), arguments.begin(), arguments.end());
        const auto done = run(std::move(plan));
        ASSERT_TRUE(done);
        ASSERT_EQ(done->status, 0) << done->out;
    }

private:
    std::string m_path;
};

} // namespace gpuq::testing
