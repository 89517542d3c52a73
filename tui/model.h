// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/base/chart.h"
#include "tui/base/log_text.h"
#include "tui/base/picture.h"
#include "tui/base/theme.h"
#include "tui/base/typed_text.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// The full-screen view as values: input, effects and state.
namespace gpuq::tui {

// Input.

/// Text that the terminal has marked as pasted.
struct Paste {
    std::u32string text;
};
/// A button of the mouse, its wheel or its pointer, at a cell.
struct Mouse {
    enum class Action { click, double_click, wheel_up, wheel_down, move } action = Action::click;
    int row = 0, column = 0;
};
struct Resized {
    int rows = 24, columns = 80;
};
struct Tick {
    Time now;
};
struct PictureRead {
    Picture picture;
};
struct DetailRead {
    Detail detail;
};
struct ComparisonRead {
    Comparison comparison;
};
/// When bytes of a log were written: those before `size` and not before that of the element before.
/// The bytes before the first element are older, and their time is unknown.
struct LogMoment {
    std::uint64_t size = 0;
    Time at;
};
/// Bytes of the open log, which continue it or replace it.
struct LogBytes {
    std::string key;
    Stream stream = Stream::out;
    std::string bytes;
    bool anew = false;              ///< the text shown so far is obsolete
    std::uint64_t skipped = 0;      ///< bytes of the file before the first one shown
    std::string trouble;            ///< why there are none; the text shown stays
    std::string note{};             ///< with `anew`: the change to the file
    std::vector<LogMoment> times{}; ///< with `anew` all of them, else new ones
};
/// A command has ended; its last output.
struct Done {
    std::string message;
    bool failed = false;
    std::vector<std::string> arguments{}; ///< of the command; empty: a message of the view itself
    std::string started{};                ///< key of the run that it has started; empty: none
};
/// The output of a dry run.
struct Tried {
    std::vector<std::string> arguments; ///< of gpuq, as in Try
    Done done;
};
/// Continuations of the last one of `arguments`.
struct Completed {
    std::vector<std::string> arguments; ///< of gpuq, as in Complete
    std::vector<std::string> proposals;
};
using Message = std::variant<Key, Paste, Mouse, Resized, Tick, PictureRead, DetailRead,
                             ComparisonRead, LogBytes, Done, Tried, Completed>;

// Effects, to be performed by the loop.

struct Quit {};
/// Another program has written to the terminal.
struct Redraw {};
/// Whether to query Slurm now. `unless_shared`: not if the site shares a recent overview.
enum class Anew : std::uint8_t { no, unless_shared, always };
/// Read the disk again now, and perhaps query Slurm, as soon as permitted.
struct Refresh {
    Anew anew = Anew::always;
    bool operator==(const Refresh&) const = default;
};
struct OpenLog {
    std::string key;
    Stream stream = Stream::out;
};
struct CloseLog {};
/// A gpuq command, without the program's name.
struct Command {
    std::vector<std::string> arguments;
    bool on_terminal = false; ///< uses the whole terminal until it ends
    bool to_pager = false;    ///< and its output is for $PAGER
    bool pauses = false;      ///< on the terminal: the user reads its output, then presses Enter
    bool operator==(const Command&) const = default;
};
/// Describe the run as typed so far, without starting it.
struct Try {
    std::vector<std::string> arguments; ///< of gpuq
};
/// Which words may continue a command line of gpuq.
struct Complete {
    std::vector<std::string> arguments; ///< of gpuq; the last one is incomplete, perhaps empty
};
struct Compare {
    std::vector<std::string> keys;
};
/// Copy to the clipboard of the user's terminal.
struct Copy {
    std::string text;
};
/// Something has happened that the user may want to know while the terminal is not in view.
struct Notify {
    std::string text;
    RunMark mark = RunMark::done; ///< running: it has started
    /// Of the run, as in RunRow; of many runs no key, and their ids with blanks between.
    std::string key, id;
    bool operator==(const Notify&) const = default;
};
using Effect = std::variant<Quit, Redraw, Refresh, OpenLog, CloseLog, Command, Try, Complete,
                            Compare, Copy, Notify>;

// State.

struct OpenedLog {
    std::string key;
    std::string id;        ///< as users type it
    std::string title;     ///< `run 4711` or `try cal/12`
    std::string name;      ///< the run's; the values of the try
    bool is_joint = false; ///< both streams in one file, as that of a try
    Stream stream = Stream::out;
    LogText text;
    std::uint64_t skipped = 0; ///< bytes of the file before the first one received
    std::uint64_t bytes = 0;   ///< approximate size of the file so far
    std::string trouble;
    bool follow = true;
    bool wrap = true;
    bool with_times = false; ///< each line has its time in front
    std::vector<LogMoment> times;
    std::string note;        ///< the change to the file
    std::size_t top = 0;     ///< first line shown, unless it follows
    std::size_t top_row = 0; ///< first row shown of that line, if wrapped
    bool behind = false;     ///< more output exists, not read so that the lines shown are kept
};

/// A question about an action that can't be undone.
struct Question {
    std::string text;
    std::vector<Command> commands; ///< executed on `y`
};

/// A line being typed.
struct Prompt : TypedText {
    enum class Purpose { search, filter, extend, exempt, command };
    Purpose purpose = Purpose::search;
    std::string label;
    std::string key_of_run;             ///< the run for `extend` and `exempt`
    Done answer;                        ///< why the command failed, or can't be read
    std::vector<std::string> proposals; ///< proposed by completion
    std::string before;                 ///< the text when it was opened
    std::string draft;                  ///< the text before an earlier line was fetched
    std::size_t back = 0;               ///< which earlier line it shows, from the newest; 0: none
};

constexpr std::size_t k_form_fields = 8;

/// A run to be started.
struct Form {
    std::string title;
    std::string key_of_run;                      ///< it is started again; empty: a new run
    std::array<TypedText, k_form_fields> fields; ///< those of k_form (form.h)
    std::size_t at = 0;                          ///< the field that has the keys
    /// Of that run, as in Detail; empty: unknown.
    std::map<std::string, std::string> before;
    Done answer; ///< description of the run that would be started; empty: unknown
    Time answered_at{};
    std::vector<std::string> proposals; ///< for this field, by completion
};

/// A message shown for a while.
struct Toast {
    std::string text;
    RunMark mark = RunMark::done;
    Time until;
};

enum class Panel : std::uint8_t { gpus, runs, run };
enum class Tab : std::uint8_t { log, curves, gpus, facts, timeline };
constexpr Tab k_last_tab = Tab::timeline;
/// `active`: those that run or wait first, the newest before the others; then those that have
/// ended, the last to end first.
enum class SortBy : std::uint8_t { active, newest, name, state, progress, loss, ends };
constexpr SortBy k_last_sort = SortBy::ends;

/// How the list of runs is shown.
struct ListView {
    std::string filter; ///< text contained in the lines of the runs shown
    SortBy sort = SortBy::active;
    bool reversed = false;
    bool grouped = false; ///< by name, without a number at its end
    bool hides_ended = false;
    std::set<std::string> unfolded; ///< keys of sweeps whose workers are shown
    std::size_t first_row = 0;
    /// Key of the run that was selected until it left the list; selected again if it returns before
    /// the next key. Empty: none.
    std::string displaced;
};

enum class TriesBy : std::uint8_t { metric, number, time };
constexpr TriesBy k_last_tries_sort = TriesBy::time;

/// How the tries of the selected sweep are shown.
struct BoardView {
    std::shared_ptr<const Sweep> ordered; ///< whose tries are in `order`; null: to be sorted again
    std::vector<std::size_t> order;       ///< indices into Sweep::tries
    std::size_t selected = 0;             ///< number of a try; 0: the first one in this order
    std::size_t first_row = 0;
    std::set<std::size_t> marks; ///< numbers of tries
    TriesBy sort = TriesBy::metric;
    bool reversed = false;
    std::size_t parameter = 0; ///< the plotted one
    bool log = false;          ///< that of the selected try is shown instead
};

/// The panel that has the keys, and the view of the run's panel.
struct PanelView {
    Panel focus = Panel::runs;
    bool full = false; ///< the focused panel has the whole screen
    Tab tab = Tab::facts;
    Tab tab_in_panel = Tab::facts; ///< the tab before it had the whole screen
    int scroll = 0;                ///< first row shown of the tab, unless it is the log
};

/// How the charts of curves are shown.
struct ChartsView {
    ChartView view;               ///< of each of them
    std::size_t selected = 0;     ///< chart, or metric of a comparison
    bool single = false;          ///< only the selected chart is shown, or one of the chosen ones
    std::set<std::string> chosen; ///< titles of the first curves of charts
};

/// Commands that the user has given, and the lines typed for them.
struct Commands {
    std::vector<std::string> verbs; ///< first words of gpuq's commands; empty: unknown
    std::size_t running = 0;        ///< not ended yet, including those that wait for others
    /// A run started from here, which is selected when it is listed.
    struct Started {
        std::string key;
        Time until; ///< too late then: the user does something else
    };
    std::optional<Started> started;
    std::optional<Form> form; ///< being filled in
    /// Lines that were entered, the newest last.
    std::map<Prompt::Purpose, std::vector<std::string>> entered;
    /// The line or form of the last command and the command, until the next key: it can be
    /// corrected if the command fails.
    struct Last {
        std::variant<Prompt, Form> typed;
        std::vector<std::string> arguments;
    };
    std::optional<Last> last;
};

struct Model {
    Resized size;
    Time now{};
    Theme theme;
    Picture picture;
    bool has_picture = false; ///< one has been read
    ListView list;
    std::vector<std::size_t> shown; ///< indices of the runs in the list, in its order
    /// By key: of the selected run and those in the list that were read; of tries likewise.
    std::map<std::string, Detail> details;
    std::string selected; ///< key of a run
    std::set<std::string> marks;
    std::size_t gpu = 0;                    ///< selected GPU: its number among all of the picture
    std::optional<std::size_t> pointed_gpu; ///< under the mouse, until the next key
    PanelView panels;
    ChartsView charts;
    BoardView board;
    std::optional<Comparison> comparison;
    Commands commands;
    std::optional<OpenedLog> log;
    std::optional<OpenedLog> closed_log; ///< the last one: opened again, it is as it was
    std::optional<Question> question;
    std::optional<Prompt> prompt;
    std::optional<int> help; ///< the first key on the page shown of it
    std::string found;       ///< text that `n` searches for
    Done answer;             ///< to the last command or key; lines
    std::vector<Toast> toasts;
};

/// The selected run among those shown; null without one.
const RunRow* selected_run(const Model& model);
/// Its details; null if they are not known.
const Detail* selected_detail(const Model& model);
/// The selected try of the selected sweep; null without one.
const TryRow* selected_try(const Model& model);
/// The key of a try of the selected sweep, in details and effects: `KEY/12`.
std::string key_of_try(const Model& model, std::size_t number);
/// Whether the selected sweep's tries are shown: not the log of one of them.
bool shows_board(const Model& model);
/// The keys of the runs and tries whose details are shown: the selected one first; empty while a
/// comparison or the help covers them.
std::vector<std::string> runs_in_detail(const Model& model);
/// Whether the tab with the log is visible.
bool shows_log(const Model& model);

} // namespace gpuq::tui
