// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/update.h"
#include "tui/view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

/// Compares every pane at four sizes with the reviewed text in tests/tui/screens. After an intended
/// change, GPUQ_WRITE_SCREENS=1 rewrites the files: review the difference.
namespace gpuq::tui {
namespace {

using report::Cell;
using report::Column;

const Time k_now{std::chrono::seconds(1'795'000'012)};

Picture picture()
{
    Picture made;
    made.cluster = "centre";
    made.answer = "yes: 2 k80 in queue calibration (up to 2 h); 3 jobs wait for 5 GPUs";
    made.slurm_at = k_now - std::chrono::seconds(12);
    made.gpus.columns = {{"model", "GPU"},
                         {"queues", "QUEUES", Column::Align::left, Column::Shrink::yes},
                         {"free", "FREE", Column::Align::right},
                         {"mine", "MINE", Column::Align::right},
                         {"others", "OTHERS", Column::Align::right},
                         {"next", "NEXT FREE BY", Column::Align::left, Column::Shrink::no, 1}};
    made.gpus.rows = {{"k80", "calibration,gpu", {"2", Cell::Tone::good}, "3", "3", "now"},
                      {"a100", "gpu", "0", "0", "?", "16:40"}};
    made.runs.columns = {{"id", "ID", Column::Align::right},
                         {"name", "NAME", Column::Align::left, Column::Shrink::yes},
                         {"state", "STATE", Column::Align::left, Column::Shrink::yes},
                         {"gpus", "GPUS", Column::Align::right, Column::Shrink::no, 3},
                         {"time", "TIME / LIMIT", Column::Align::left, Column::Shrink::no, 2}};
    for (int i = 0; i < 7; ++i) {
        RunRow row;
        row.key = fmt::format("key{}", i);
        row.id = fmt::format("{}", 4711 - i);
        row.name = i == 2 ? "größe 最終" : fmt::format("train-{}", i);
        row.gpus = "1 GPU";
        row.active = i < 5;
        row.running = i < 4;
        row.saves = i == 0;
        row.facts = {"runs on n0 since 14:02, until 16:02 (1 h 13 min left)",
                     "python3 train.py --lr 3e-4  (in /home/ada/project)"};
        row.part = i < 4 ? std::optional(0.4) : std::nullopt;
        made.rows.push_back(row);
        made.runs.rows.push_back({row.id, row.name,
                                  i < 4 ? Cell("running", Cell::Tone::good)
                                        : Cell("waiting: no GPU is free", Cell::Tone::warning),
                                  "1", "47 min / 2 h"});
    }
    return made;
}

Detail detail()
{
    Curve loss{"train/loss", "", {}};
    Curve busy{"GPUs busy", "%", {}};
    for (int i = 0; i < 200; ++i) {
        loss.values.emplace_back(4.0 / (1 + i * 0.1));
        busy.values.emplace_back(i % 50 < 5 ? std::nullopt : std::optional(60.0 + i % 40));
    }
    return {
        "key0", {"progress: step 200 of 500, 3.1 steps/s", "loss: 0.19 at step 200"}, {loss, busy}};
}

struct Pane {
    const char* name;
    const char* keys;
};
constexpr Pane k_panes[] = {{"lists", ""},     {"log", "\n"},   {"help", "?"},
                            {"question", "x"}, {"prompt", "+"}, {"filter", "/wait\n"}};
constexpr Resized k_sizes[] = {{10, 40}, {24, 80}, {40, 120}, {60, 200}};

std::string screen_of(const Pane& pane, Resized size)
{
    Model model;
    update(model, size);
    update(model, Tick{k_now});
    update(model, PictureRead{picture()});
    update(model, DetailRead{detail()});
    for (const char key : std::string_view(pane.keys)) {
        update(model, key == '\n' ? Key{Special::enter, 0}
                                  : Key{Special::none, static_cast<char32_t>(key)});
    }
    if (model.log) {
        std::string text = "loading \x1b[32mdata\x1b[0m\n\r10%|#   |\r100%|####|\n";
        for (int step = 0; step < 70; ++step) {
            text += fmt::format("step {:3} loss {:.4f} größe 最終 {}\n", step, 4.0 / (1 + step),
                                std::string(60, '.'));
        }
        update(model, LogBytes{"key0", Stream::out, text, true, 5'000'000, ""});
    }
    return view(model).text();
}

TEST(Screens, LookAsTheyDid)
{
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    for (const Pane& pane : k_panes) {
        for (const Resized& size : k_sizes) {
            const std::string file = fmt::format("{}/{}-{}x{}.txt", GPUQ_SCREENS_DIR, pane.name,
                                                 size.columns, size.rows);
            const std::string shown = screen_of(pane, size);
            if (std::getenv("GPUQ_WRITE_SCREENS") != nullptr) {
                std::ofstream(file) << shown;
            }
            std::ifstream stream(file);
            const std::string before{std::istreambuf_iterator<char>(stream), {}};
            EXPECT_EQ(shown, before) << file;
        }
    }
}

} // namespace
} // namespace gpuq::tui
