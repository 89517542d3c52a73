// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/page_output.h"

#include "cli/base/message.h"
#include "cli/base/table_output.h"

#include <fmt/format.h>

namespace gpuq::cli {

Result<PageOutput> PageOutput::of(const Invocation& invocation)
{
    PageOutput output(invocation);
    output.m_path = invocation.options.value("html");
    if (output.m_path == "-" && invocation.globals.json) {
        return fail(Error::Kind::usage, "--html -: one document at a time, without --json");
    }
    if (output.m_path && output.m_path != "-") {
        TRY_ASSIGN(output.m_file, OutputFile::at(*output.m_path));
    }
    return output;
}

Result<int> PageOutput::write(const Content& content) const
{
    if (m_file) {
        TRY(m_file->write(content.page()));
    }
    if (m_invocation.globals.json) {
        TRY(print_text(report::json_document(content.document())));
    } else {
        for (const std::string& warning : content.warnings) {
            print_message(fmt::format("{}; showing the state on disk", warning));
        }
        TRY(m_path == "-" ? print_text(content.page()) : content.print_text());
    }
    if (m_file && !m_invocation.globals.quiet) {
        print_message(fmt::format("wrote {}", *m_path));
    }
    return 0;
}

} // namespace gpuq::cli
