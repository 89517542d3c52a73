// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/simulate.h"

#include "cli/base/message.h"
#include "cli/base/output_file.h"
#include "cli/base/table_output.h"
#include "cli/pages/simulation_page.h"
#include "cli/policy_ops/file.h"
#include "cli/policy_ops/plan_simulation.h"
#include "cli/render/simulation_text.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

/// The file for --html, checked before the simulation, which takes long.
Result<std::optional<OutputFile>> page_in(const Options& options)
{
    const auto path = options.value("html");
    if (!path) {
        return std::optional<OutputFile>{};
    }
    TRY_ASSIGN(OutputFile file, OutputFile::at(*path));
    return std::optional(std::move(file));
}

} // namespace

Result<int> policy_simulate(Invocation& invocation)
{
    const Options& options = invocation.options;
    TRY_ASSIGN(const auto page, page_in(options));
    TRY_ASSIGN(const auto path, named_policy(invocation));
    TRY_ASSIGN(const LoadedPolicy loaded, load_valid_policy(invocation.services, path));
    TRY_ASSIGN(const Workload workload, workload_in(invocation));
    const policy::Rules rules(loaded.reading.policy);
    note_assumed_date(invocation, loaded.reading.policy, workload);
    std::vector<Simulated> all;
    if (const auto other = options.value("against")) {
        TRY_ASSIGN(const LoadedPolicy before, load_valid_policy(invocation.services, *other));
        TRY_ASSIGN(Simulated one,
                   simulated_under(policy::Rules(before.reading.policy), before.path, workload));
        all.push_back(std::move(one));
    } else {
        TRY_ASSIGN(Simulated one, simulated_plain(rules, workload));
        all.push_back(std::move(one));
    }
    TRY_ASSIGN(Simulated one, simulated_under(rules, loaded.path, workload));
    all.push_back(std::move(one));
    if (page) {
        TRY(page->write(simulation_page(all, workload)));
    }
    if (invocation.globals.json) {
        TRY(print_text(
            report::json_document(simulation_document(all, workload.name, workload.left_out()))));
    } else {
        TRY(print_table(simulation_table(all), invocation.globals, invocation.services));
        TRY(print_text("\n"));
        TRY(print_table(partitions_table(all), invocation.globals, invocation.services));
        if (const report::Table users = users_table(all); !users.rows.empty()) {
            TRY(print_text("\n"));
            TRY(print_table(users, invocation.globals, invocation.services));
        }
        TRY(print_text(left_out_text(workload.name, workload.left_out())));
        for (const Simulated& each : all) {
            TRY(print_text(refused_text(each) + broken_text(each)));
        }
    }
    if (page && !invocation.globals.quiet) {
        print_message(fmt::format("wrote {}", *options.value("html")));
    }
    return 0;
}

} // namespace gpuq::cli
