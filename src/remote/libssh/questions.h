// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "remote/askpass.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::remote {

/// Asks the user during a login. Used by the thread that logs in.
class Asker {
public:
    virtual ~Asker() = default;
    /// Blocks until there is an answer; nullopt: the user has refused, or cancel() was called. The
    /// caller wipes the answer. `text` may come from the host.
    virtual std::optional<std::string> ask(const std::string& text, bool echo) = 0;
    /// Ends the current question and all later ones. Any thread.
    virtual void cancel() = 0;
};

/// Asks on the terminal of this process, as ssh does: at the first login.
class TerminalAsker : public Asker {
public:
    TerminalAsker();
    std::optional<std::string> ask(const std::string& text, bool echo) override;
    void cancel() override;

private:
    Descriptor m_cancelled; ///< an eventfd
};

/// Passes questions to the main thread, which shows them in its own way.
class QuestionBox : public Asker {
public:
    QuestionBox();
    ~QuestionBox() override;
    QuestionBox(const QuestionBox&) = delete;
    QuestionBox& operator=(const QuestionBox&) = delete;
    std::optional<std::string> ask(const std::string& text, bool echo) override;
    void cancel() override;

    // For the main thread, as the functions of AskPass of these names.
    int descriptor() const { return m_bell.get(); } ///< readable: next() has a question
    std::optional<Question> next();
    bool is_asked() const;
    void answer(std::string_view text);

private:
    Descriptor m_bell; ///< an eventfd
    mutable std::mutex m_mutex;
    std::condition_variable m_changed;
    bool m_cancelled = false;
    std::optional<Question> m_question; ///< not taken by next() yet
    bool m_is_asked = false;
    std::optional<std::string> m_answer;
};

} // namespace gpuq::remote
