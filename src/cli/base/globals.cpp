// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/globals.h"

namespace gpuq::cli {
namespace {

Result<Globals::Color> color_of(const std::string& text)
{
    if (text == "auto") {
        return Globals::Color::automatic;
    }
    if (text == "always" || text == "never") {
        return text == "always" ? Globals::Color::always : Globals::Color::never;
    }
    return fail(Error::Kind::usage, "--color: one of auto, always, never");
}

} // namespace

Result<void> take_globals(const Options& options, Globals& globals)
{
    if (options.has("forward")) {
        return fail(Error::Kind::usage, "--forward requires --host: it forwards a port of a run "
                                        "to this machine");
    }
    globals.json = globals.json || options.has("json");
    globals.no_header = globals.no_header || options.has("no-header");
    globals.quiet = globals.quiet || options.has("quiet");
    globals.verbose += options.values("verbose").size();
    globals.columns = options.value("columns").value_or(globals.columns);
    globals.cluster = options.value("cluster").value_or(globals.cluster);
    if (const auto color = options.value("color")) {
        TRY_ASSIGN(globals.color, color_of(*color));
    }
    return {};
}

} // namespace gpuq::cli
