// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/connect_target.h"
#include "cli/commands/verbs.h"
#include "cli/host/editor.h"
#include "cli/render/run_table.h"
#include "runs/connect_keys.h"

#include <array>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "editor", "NAME",
           "code, cursor, codium, windsurf or jetbrains; default: the first that is installed"},
    Option{0, "ssh-config", "FILE", "the file that the editor's ssh reads; default: ~/.ssh/config"},
    Option{'y', "yes", "", "add a line to that file without asking"},
    Option{0, "as-target", "", "for gpuq --host: data about the run, as a frame",
           Option::State::hidden}};

Result<int> code(Invocation& invocation)
{
    TRY_ASSIGN(Editing editing, editing_from(invocation.options, invocation.arguments));
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(const RunStatus run, find_connectable(invocation, *store, editing.run, "code"));
    TRY(check_running(run));
    TRY(prepare_connect(*store, run.key, [&] { return invocation.services.new_ssh_key(); }));
    if (invocation.options.has("as-target")) {
        return print_target(invocation.services, run);
    }
    if (editing.directory.empty() && run.run) {
        editing.directory = run.run->request.work_dir;
    }
    editing.json = invocation.globals.json;
    TRY_ASSIGN(const SshHost host,
               host_of(invocation, *store, run, editor_names(run_id(run), editing.run, run.key)));
    return open_editor(editing, host);
}

} // namespace

const Verb k_code_verb{"code", "gpuq code [--editor NAME] [RUN [DIR]]",
                       "open VS Code or another editor in a run", code, k_options};

} // namespace gpuq::cli
