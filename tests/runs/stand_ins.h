// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace gpuq {

/// A directory with replacements for programs that Debian does not package: minimal `module` (its
/// init file), `conda`, `apptainer` and `srun`, which log their arguments to `told`. `show` prints
/// its arguments, three variables and its current directory, each followed by a NUL.
class StandIns {
public:
    StandIns()
    {
        std::string pattern = testing::TempDir() + "gpuq-stand-ins-XXXXXX";
        m_directory = mkdtemp(pattern.data());
        std::filesystem::create_directories(m_directory + "/bin");
        std::filesystem::create_directories(m_directory + "/init");
        program("show", R"(for word in "$@" "V=$V" "MODULE=$MODULE" "CONDA=$CONDA" "$PWD"; do
    printf '%s\0' "$word"
done
)");
        file("init/bash", R"(module() {
    printf 'module %s\n' "$*" >>"$STAND_INS/told"
    [ "$2" != missing ] && export MODULE="$MODULE[$2]"
}
[ $# -eq 0 ] || echo "init saw $*" >>"$STAND_INS/told"
)");
        program("conda", R"x([ "$1 $2" = "shell.bash hook" ] || exit 1
cat <<'END'
conda() {
    printf 'conda %s\n' "$*" >>"$STAND_INS/told"
    [ "$2" != missing ] && export CONDA="$MODULE($2)"
}
[ $# -eq 0 ] || echo "hook saw $*" >>"$STAND_INS/told"
END
)x");
        program("apptainer", R"(printf 'apptainer %s\n' "$*" >>"$STAND_INS/told"
shift 3
exec "$@"
)");
        program("srun", R"(printf 'srun %s\n' "$*" >>"$STAND_INS/told"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
)");
    }
    ~StandIns() { std::filesystem::remove_all(m_directory); }
    StandIns(const StandIns&) = delete;
    StandIns& operator=(const StandIns&) = delete;

    const std::string& directory() const { return m_directory; }

    void file(const std::string& name, const std::string& text) const
    {
        std::ofstream(m_directory + "/" + name, std::ios::binary) << text;
    }
    void program(const std::string& name, const std::string& text) const
    {
        file("bin/" + name, "#!/bin/bash\n" + text);
        std::filesystem::permissions(m_directory + "/bin/" + name,
                                     std::filesystem::perms::owner_all);
    }
    void remove(const std::string& name) const
    {
        std::filesystem::remove(m_directory + "/" + name);
    }
    std::string read(const std::string& name) const
    {
        std::ifstream stream(m_directory + "/" + name, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    struct Outcome {
        int status = 0;
        std::vector<std::string> output; ///< output of `show`
        std::string error;
    };

    /// Runs `argv` with the replacements in PATH until it exits.
    Outcome run(const std::vector<std::string>& argv) const
    {
        const pid_t child = fork();
        if (child == 0) {
            become(argv);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                split(read("out")), read("err")};
    }

private:
    [[noreturn]] void become(const std::vector<std::string>& argv) const
    {
        setenv("PATH", (m_directory + "/bin:/usr/bin:/bin").c_str(), 1);
        setenv("MODULESHOME", m_directory.c_str(), 1);
        setenv("STAND_INS", m_directory.c_str(), 1);
        for (const char* name : {"LMOD_PKG", "CONDA_EXE", "BASH_ENV", "V", "MODULE", "CONDA"}) {
            unsetenv(name);
        }
        dup2(open((m_directory + "/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
        dup2(open((m_directory + "/err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
        std::vector<char*> output;
        for (const std::string& word : argv) {
            output.push_back(const_cast<char*>(word.c_str()));
        }
        output.push_back(nullptr);
        execvp(output[0], output.data());
        _exit(127);
    }

    static std::vector<std::string> split(const std::string& text)
    {
        std::vector<std::string> output;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = text.find('\0', at);
            output.push_back(text.substr(at, end - at));
            at = end == std::string::npos ? text.size() : end + 1;
        }
        return output;
    }

    std::string m_directory;
};

} // namespace gpuq
