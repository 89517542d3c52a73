// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <stdlib.h>

namespace gpuq::checkpoint {

/// A temporary directory, removed by the destructor.
class Scratch {
public:
    Scratch()
        : m_path(made())
    {
    }
    ~Scratch()
    {
        std::error_code error;
        std::filesystem::remove_all(m_path, error);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    const std::string& path() const { return m_path; }
    std::string at(const std::string& name) const { return m_path + '/' + name; }

    /// Writes a file and creates its parent directories. `age` in seconds sets the modification
    /// time: a file with a lower age is newer, no matter when it was written.
    void put(const std::string& name, const std::string& text, int age = 100) const
    {
        std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
        std::ofstream(at(name), std::ios::binary) << text;
        set_age(name, age);
    }
    void set_age(const std::string& name, int age) const
    {
        static const auto k_now = std::filesystem::file_time_type::clock::now();
        std::filesystem::last_write_time(at(name), k_now - std::chrono::seconds(age));
    }
    std::string text(const std::string& name) const
    {
        std::ifstream file(at(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    bool has(const std::string& name) const
    {
        return std::filesystem::exists(std::filesystem::symlink_status(at(name)));
    }

private:
    static std::string made()
    {
        std::string name = std::filesystem::temp_directory_path() / "gpuq-checkpoint-XXXXXX";
        return ::mkdtemp(name.data());
    }

    std::string m_path;
};

} // namespace gpuq::checkpoint
