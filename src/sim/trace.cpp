// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/trace.h"

#include "core/number.h"
#include "sim/trace_lines.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace gpuq::sim {
namespace {

struct Closer {
    void operator()(gzFile file) const { gzclose_r(file); }
};
using GzFile = std::unique_ptr<gzFile_s, Closer>;

/// The contents of the file; zlib also reads uncompressed files.
Result<std::string> unpacked(const std::filesystem::path& path)
{
    const GzFile file(gzopen(path.c_str(), "rbe"));
    if (!file) {
        const auto kind = errno == ENOENT ? Error::Kind::missing : Error::Kind::io;
        return fail(kind, fmt::format("the trace {} can not be read: {}", sanitised(path.string()),
                                      std::strerror(errno)));
    }
    std::string text;
    std::array<char, 64 * 1024> block{};
    for (;;) {
        const int got = gzread(file.get(), block.data(), block.size());
        if (got < 0) {
            return fail(Error::Kind::io, fmt::format("the trace {} is damaged or not a file",
                                                     sanitised(path.string())));
        }
        int problem = Z_OK; // asked at once: from zlib 1.3.2 on the next read forgets it
        gzerror(file.get(), &problem);
        if (problem != Z_OK && problem != Z_STREAM_END) {
            return fail(Error::Kind::io, fmt::format("the trace {} ends too early; copy it again",
                                                     sanitised(path.string())));
        }
        if (got == 0) {
            return text;
        }
        text.append(block.data(), static_cast<std::size_t>(got));
        if (text.size() > k_most_trace_bytes) {
            return fail(Error::Kind::usage,
                        fmt::format("the trace {} has more than {} MiB", sanitised(path.string()),
                                    k_most_trace_bytes >> 20));
        }
    }
}

/// Whether a line is one of the Standard Workload Format: a comment, or numbers between blanks.
bool is_swf(std::string_view line)
{
    const Fields fields = split_blanks(line);
    return line.front() == ';' || (fields.size() > 5 && whole_number(fields.front()));
}

std::string_view first_line(std::string_view text)
{
    const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    return text.substr(begin, text.find('\n', begin) - begin);
}

} // namespace

Result<Trace> parse_trace(std::string_view text, const std::string& name, Which which)
{
    constexpr std::string_view k_byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(k_byte_order_mark)) {
        text.remove_prefix(k_byte_order_mark.size());
    }
    const std::string_view first = first_line(text);
    if (first.empty()) {
        return fail(Error::Kind::usage, fmt::format("{}:1: an empty trace", sanitised(name)));
    }
    if (first.find('|') != std::string_view::npos) {
        return parse_sacct(text, name);
    }
    return is_swf(first) ? parse_swf(text, name) : parse_csv(text, name, which);
}

Result<Trace> read_trace(const std::filesystem::path& file, Which which)
{
    TRY_ASSIGN(const std::string text, unpacked(file));
    return parse_trace(text, file.string(), which);
}

} // namespace gpuq::sim
