// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/totals.h"

#include "runs/records/json_fields.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <utility>

namespace gpuq::sweeps {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<const char*, std::size_t Tally::*>, 6> k_counts = {
    {{"waiting", &Tally::waiting},
     {"running", &Tally::running},
     {"succeeded", &Tally::succeeded},
     {"failed", &Tally::failed},
     {"stopped", &Tally::stopped},
     {"stopped_early", &Tally::stopped_early}}};

} // namespace

Totals totals_of(const std::vector<Try>& tries, const Sweep& sweep, Time now)
{
    Totals totals{tries.size(), tally_of(tries), gpu_time_used(tries, sweep, now), {}, false, {}};
    for (std::size_t i = 0; i < tries.size(); ++i) {
        const auto& best = tries[i].reached.best;
        if (best && (!totals.best || is_better(sweep.metric, *best, totals.best->value))) {
            totals.best = Totals::Best{i + 1, *best};
        }
    }
    return totals;
}

std::string to_json(const Totals& totals)
{
    json fields{{"tries", totals.tries},
                {"gpu_microseconds", totals.gpu_time.count()},
                {"open", totals.is_open},
                {"failure", totals.failure}};
    for (const auto& [name, count] : k_counts) {
        fields[name] = totals.tally.*count;
    }
    if (totals.best && std::isfinite(totals.best->value)) {
        fields["best_try"] = totals.best->number;
        fields["best"] = totals.best->value;
    } else if (totals.best) { // no number in JSON: the tries are read each time
        fields["tries"] = nullptr;
    }
    return document_of(std::move(fields));
}

Result<Totals> totals_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, document_in(text, "totals.json"));
    const auto tries = number_in<std::size_t>(document, "tries");
    const auto time = number_in<std::int64_t>(document, "gpu_microseconds");
    if (!tries || !time) {
        return fail(Error::Kind::usage, "totals.json: incomplete");
    }
    Totals totals{*tries, {}, std::chrono::microseconds(*time), {}, flag_in(document, "open"), {}};
    for (const auto& [name, count] : k_counts) {
        totals.tally.*count = number_in<std::size_t>(document, name).value_or(0);
    }
    if (totals.tally.all() != totals.tries) {
        return fail(Error::Kind::usage, "totals.json: its counts differ");
    }
    totals.failure = text_in(document, "failure").value_or("");
    const auto number = number_in<std::size_t>(document, "best_try");
    const auto best = document.find("best");
    if (number && best != document.end() && best->is_number()) {
        totals.best = Totals::Best{*number, best->get<double>()};
    }
    return totals;
}

} // namespace gpuq::sweeps
