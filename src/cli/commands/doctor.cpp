// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/findings_output.h"
#include "cli/base/table_output.h"
#include "cli/queries/checks.h"
#include "report/json.h"

#include <fmt/format.h>

#include <array>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "nodes", "", "also check a node, with a short job without a GPU"}};

Result<int> doctor(Invocation& invocation)
{
    if (!invocation.arguments.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("doctor: unexpected argument '{}'", invocation.arguments.front()));
    }
    const report::Table none = findings_table({});
    TRY_ASSIGN([[maybe_unused]] const auto checked, report::only(none, invocation.globals.columns));
    const auto findings = examine(
        invocation.services, invocation.options.has("nodes") ? NodeQueries::yes : NodeQueries::no);
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(findings_list(findings))));
    } else {
        TRY(print_table(findings_table(findings), invocation.globals, invocation.services));
    }
    return count_of(findings, Finding::Level::problem) == 0 ? 0 : 1;
}

} // namespace

const Verb k_doctor_verb{"doctor", "gpuq doctor [--nodes]",
                         "check the environment of gpuq and suggest remedies", doctor, k_options};

} // namespace gpuq::cli
