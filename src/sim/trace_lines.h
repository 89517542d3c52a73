// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/trace.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::sim {

using Fields = std::vector<std::string_view>;

/// The line of a trace that is being read; creates its errors.
class Line {
public:
    Line(const std::string& file, std::size_t number)
        : m_file(file)
        , m_number(number)
    {
    }

    Error wrong(const std::string& what) const;
    /// The same for a position in the line, counted from 1.
    Error wrong_at(std::size_t column, const std::string& what) const;
    /// A number of seconds; a fraction is dropped. nullopt for an empty text and for a negative
    /// number, which means "unknown" in SWF.
    Result<std::optional<Seconds>> seconds(std::string_view text, std::string_view what) const;
    /// The same for a count, which must be present.
    Result<int> count(std::string_view text, std::string_view what) const;

private:
    const std::string& m_file;
    std::size_t m_number;
};

/// Calls `take` for each line that is not empty, without its line end.
Result<void> each_line(std::string_view text, const std::string& file,
                       const std::function<Result<void>(const Line&, std::string_view)>& take);

/// The fields between `separator`s; comma-separated values may be in quotes, but must not span
/// lines. Views into `line`.
Fields split(std::string_view line, char separator);
/// The fields between blanks.
Fields split_blanks(std::string_view line);

/// Names of columns, for finding fields.
class Columns {
public:
    explicit Columns(const Fields& header);

    bool has(std::string_view name) const;
    /// The field of this row; empty if there is no such column.
    std::string_view in(const Fields& row, std::string_view name) const;
    std::size_t size() const { return m_names.size(); }

private:
    std::vector<std::string> m_names;
};

/// Sorts by submission, and makes the first submission time zero. Returns its time before.
Seconds finish(Trace& trace);

/// Converts `2026-11-20T13:11:58`, taken as UTC, to seconds of Unix time; nullopt for Unknown and
/// None.
Result<std::optional<Seconds>> sacct_moment(const Line& line, std::string_view text);
/// Reads number and model of the GPUs, and the number of nodes, from
/// `billing=4,cpu=4,gres/gpu:k80=2,gres/gpu=2,node=1`.
void read_sacct_tres(std::string_view text, TraceJob& job);

Result<Trace> parse_csv(std::string_view text, const std::string& name, Which which);
Result<Trace> parse_swf(std::string_view text, const std::string& name);
Result<Trace> parse_sacct(std::string_view text, const std::string& name);

} // namespace gpuq::sim
