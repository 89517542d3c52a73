// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/key.h"

#include "core/comment.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {
namespace {

constexpr std::string_view k_shape = "ddddddddTdddddd.dddZ-hhhhhhhhhhhhhhhh";

int digits(std::string_view text, std::size_t from, std::size_t count)
{
    int value = 0;
    for (const char c : text.substr(from, count)) {
        value = value * 10 + (c - '0');
    }
    return value;
}

bool fits(char c, char shape)
{
    switch (shape) {
    case 'd':
        return c >= '0' && c <= '9';
    case 'h':
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    default:
        return c == shape;
    }
}

std::chrono::year_month_day date_of(std::string_view text)
{
    using namespace std::chrono;
    return year{digits(text, 0, 4)} / month(static_cast<unsigned>(digits(text, 4, 2))) /
           day(static_cast<unsigned>(digits(text, 6, 2)));
}

} // namespace

RunKey RunKey::make(Time now, std::array<unsigned char, 8> random)
{
    using namespace std::chrono;
    const auto day = floor<days>(now);
    const year_month_day date{day};
    const hh_mm_ss clock{floor<milliseconds>(now - day)};
    std::string text =
        fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}.{:03}Z-", int(date.year()),
                    unsigned(date.month()), unsigned(date.day()), clock.hours().count(),
                    clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
    for (const unsigned char byte : random) {
        text += fmt::format("{:02x}", byte);
    }
    return RunKey(std::move(text));
}

Result<RunKey> RunKey::parse(std::string_view text)
{
    const bool good = text.size() == k_shape.size() &&
                      std::equal(text.begin(), text.end(), k_shape.begin(), fits) &&
                      date_of(text).ok();
    if (!good) {
        return fail(Error::Kind::usage, "not the key of a run");
    }
    return RunKey(std::string(text));
}

Time RunKey::made_at() const
{
    using namespace std::chrono;
    return sys_days{date_of(m_text)} + hours{digits(m_text, 9, 2)} +
           minutes{digits(m_text, 11, 2)} + seconds{digits(m_text, 13, 2)} +
           milliseconds{digits(m_text, 16, 3)};
}

std::string job_comment(const RunKey& key, LinkNumber link)
{
    const std::string of_first = std::string(k_comment_prefix) + key.text();
    return link == LinkNumber{} ? of_first : fmt::format("{}:{}", of_first, link.value);
}

Result<RunKey> key_in_comment(std::string_view comment)
{
    if (!comment.starts_with(k_comment_prefix)) {
        return fail(Error::Kind::missing, "not a job of gpuq");
    }
    comment = link_in_comment(comment);
    comment.remove_prefix(k_comment_prefix.size());
    return RunKey::parse(comment.substr(0, comment.find(':')));
}

} // namespace gpuq
