// SPDX-License-Identifier: GPL-2.0-or-later
// The parts of {fmt} that our programs use.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <locale>
#include <string>
#include <vector>

int main(int count, char** words)
{
    const std::vector<std::string> all(words, words + count);
    const auto now = std::chrono::system_clock::now();
    const std::string text = fmt::format("{:>5} {:.3f} {} {:x} {} {:%F %T}", count, 1.5 * count,
                                         1.5F, count, fmt::join(all, ", "), now);
    const std::string grouped = fmt::format(std::locale::classic(), "{:L} {:L}", 1234567, 1.5);
    return text.size() + grouped.size() > fmt::formatted_size("{}", words[0]) ? 0 : 1;
}
