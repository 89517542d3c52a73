// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/past.h"

#include "core/layout.h"
#include "core/strings.h"
#include "runs/records/json_fields.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::sweeps {
namespace {

using nlohmann::json;

constexpr std::string_view k_marks = "+-xe.";

json text_of(const std::vector<Past::Attempt>& attempts)
{
    std::string lines;
    for (const auto& [worker, event] : attempts) {
        lines += fmt::format("{} {}\n", worker.text(), to_line(event));
    }
    return lines;
}

Result<std::vector<Past::Attempt>> attempts_in(std::string_view text)
{
    std::vector<Past::Attempt> attempts;
    for (const std::string_view line : fields(text, "\n")) {
        const auto [key, rest] = cut(line, ' ');
        TRY_ASSIGN(RunKey worker, RunKey::parse(key));
        const auto event = try_event_in(rest);
        if (!event) {
            return fail(Error::Kind::usage, "past.json: an invalid attempt");
        }
        attempts.push_back({std::move(worker), *event});
    }
    return attempts;
}

} // namespace

std::size_t Past::ended() const
{
    return ends.size() - static_cast<std::size_t>(std::count(ends.begin(), ends.end(), '.'));
}

std::string past_json(const RunKey& sweep)
{
    return layout::sweep_dir(sweep) + "/past.json";
}

std::string to_json(const Past& past)
{
    json journals = json::object();
    for (const auto& [worker, offset] : past.journals) {
        journals[worker.text()] = offset;
    }
    json document{{"ends", past.ends},
                  {"microseconds", past.used.count()},
                  {"open", text_of(past.open)},
                  {"retried", to_lines(past.retried)},
                  {"batches", past.batches},
                  {"retries", past.retries},
                  {"journals", std::move(journals)}};
    if (past.best) {
        document["best"] = to_line(*past.best);
    }
    return document_of(std::move(document));
}

Result<Past> past_from_json(std::string_view text)
{
    const Error invalid = fail(Error::Kind::usage, "past.json: invalid");
    TRY_ASSIGN(const json document, document_in(text, "past.json"));
    const auto time = number_in<std::int64_t>(document, "microseconds");
    const auto batches = number_in<int>(document, "batches");
    const auto retries = number_in<int>(document, "retries");
    const auto journals = document.find("journals");
    if (!time || !batches || !retries || journals == document.end() || !journals->is_object()) {
        return invalid;
    }
    Past past{text_in(document, "ends").value_or(""), std::chrono::microseconds(*time)};
    past.batches = *batches;
    past.retries = *retries;
    TRY_ASSIGN(past.open, attempts_in(text_in(document, "open").value_or("")));
    past.retried = retries_in(text_in(document, "retried").value_or(""));
    if (const auto best = text_in(document, "best")) {
        past.best = try_event_in(*best);
        if (!past.best || past.best->number > past.ends.size()) {
            return invalid;
        }
    }
    for (const auto& [name, offset] : journals->items()) {
        TRY_ASSIGN(RunKey worker, RunKey::parse(name));
        if (!offset.is_number_unsigned()) {
            return invalid;
        }
        past.journals.emplace(std::move(worker), offset.get<std::uint64_t>());
    }
    if (past.ends.find_first_not_of(k_marks) != std::string::npos) {
        return invalid;
    }
    return past;
}

char mark_of(const TryEvent& end)
{
    return end.end == TryEnd::stopped                       ? 'x'
           : end.end == TryEnd::stopped_early               ? 'e'
           : end.end == TryEnd::finished && end.status == 0 ? '+'
                                                            : '-';
}

TryEvent end_with(char mark, std::size_t number)
{
    TryEvent end{TryEvent::Kind::ended, number};
    end.end = mark == 'x'   ? TryEnd::stopped
              : mark == 'e' ? TryEnd::stopped_early
                            : TryEnd::finished;
    end.status = mark == '-' ? 1 : 0;
    return end;
}

} // namespace gpuq::sweeps
