// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/result.h"
#include "ports/store.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A notebook: a run whose program is Jupyter. It listens on a local socket in a private directory
/// of its node; clients reach it through the gate (remote/gate.h), which Jupyter starts.
///
/// Its files in runs/KEY: notebook.json, written before the submission; kernels.json, the kernels
/// that were running last, and notebook_note.json, its last warning, written by Jupyter
/// (notebook_config.py.inc); in connect/ until the run ends: the configuration for Jupyter, its
/// token, and the name of the gate.
namespace gpuq {

enum class NotebookPage {
    usual,   ///< the page of `jupyter notebook`
    classic, ///< that of Notebook 6
    lab,
};
constexpr NotebookPage last_of(NotebookPage)
{
    return NotebookPage::lab;
}

/// runs/KEY/notebook.json
struct Notebook {
    std::string directory; ///< absolute: the files that it shows
    NotebookPage page = NotebookPage::usual;
    std::chrono::seconds idle{0}; ///< ended when unused for this long; 0: never
    std::string supervisor;       ///< absolute path of gpuq-supervisor, which provides the gate
    bool operator==(const Notebook&) const = default;
};
std::string notebook_json(const RunKey& key);
std::string to_json(const Notebook& notebook);
Result<Notebook> notebook_from_json(std::string_view text);
/// The record of a run; nullopt if it is not a notebook.
std::optional<Notebook> read_notebook(Store& store, const RunKey& key);

/// A kernel that was running.
struct NotebookKernel {
    std::string path; ///< of its notebook, below the directory
    std::string name; ///< python3
    bool operator==(const NotebookKernel&) const = default;
};
std::string kernels_json(const RunKey& key);
/// Empty if the text is invalid.
std::vector<NotebookKernel> kernels_from_json(std::string_view text);

/// The last warning: that it ends because it is unused, for example.
std::string notebook_note_json(const RunKey& key);
/// Its text; empty if the file is invalid. May contain any characters.
std::string notebook_note_from_json(std::string_view text);

/// Names of the files in connect/.
constexpr const char* k_notebook_config = "notebook_config.py";
constexpr const char* k_notebook_token = "notebook_token";
constexpr const char* k_notebook_place = "notebook_place";

/// The destination of `gpuq connect --dial` for the notebook of a run.
constexpr const char* k_notebook_destination = "/notebook";

/// The text of notebook_place is `LINK NAME`: the gate of that link. nullopt: it is of another
/// link, or invalid.
std::optional<std::string> notebook_gate_in(std::string_view place, LinkNumber link);

/// A token as gpuq makes it: hexadecimal digits.
constexpr std::size_t k_notebook_token_digits = 48;
bool is_notebook_token(std::string_view text);

/// The program of the run, which executes Jupyter with the configuration. In a container it first
/// checks that this file is visible: Jupyter would start without it.
enum class NotebookPlace { node, container };
std::vector<std::string> notebook_program(const std::string& state_dir, const RunKey& key,
                                          NotebookPage page, NotebookPlace place);
/// `jupyter-lab`, in such a program.
std::string jupyter_in(const std::vector<std::string>& program);

/// Writes the files of a new notebook. They must exist before it is submitted.
Result<void> write_notebook(Store& store, const RunKey& key, const Notebook& notebook,
                            const std::string& token);

/// The notebooks of a directory: those that run or wait according to the disk, newest first, and,
/// if there is none, the last one that has ended. Reads the records of the newest runs only.
struct NotebooksOf {
    std::vector<RunKey> active;
    std::optional<RunKey> ended;
};
Result<NotebooksOf> find_notebooks(Store& store, const std::string& directory);

/// What a client must know to open the page: `NOTEBOOK KEY JOB TOKEN /PATH`. The line comes from
/// another host, perhaps; all of it is checked.
struct NotebookAddress {
    std::string key;
    std::uint32_t job = 0;
    std::string token;
    std::string page; ///< `/tree`
    bool operator==(const NotebookAddress&) const = default;
};
std::string line_of(const NotebookAddress& address);
std::optional<NotebookAddress> notebook_address_from(std::string_view line);
/// The path of a page in the URL.
std::string_view path_of(NotebookPage page);

} // namespace gpuq
