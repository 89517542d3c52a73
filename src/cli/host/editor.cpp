// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/editor.h"

#include "cli/base/confirm.h"
#include "cli/base/message.h"
#include "cli/base/output_file.h"
#include "cli/base/table_output.h"
#include "core/strings.h"
#include "io/subprocess.h"
#include "io/trusted_path.h"
#include "ports/clock.h"
#include "ports/host.h"
#include "report/json.h"
#include "runs/connect_keys.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <pwd.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// An editor that connects to hosts of ssh_config.
struct Editor {
    std::string_view name;
    std::string_view program; ///< takes `--remote ssh-remote+HOST DIR`; empty: opened by its URL
    std::string_view scheme;
};
constexpr std::array k_editors = {
    Editor{"code", "code", "vscode"},
    Editor{"cursor", "cursor", "cursor"},
    Editor{"codium", "codium", "vscodium"},
    Editor{"windsurf", "windsurf", "windsurf"},
    Editor{"jetbrains", "", "jetbrains-gateway"},
};
constexpr const char* k_editor_names = "code, cursor, codium, windsurf, jetbrains";

const Editor* find_editor(const std::string& name)
{
    const auto* const found =
        std::find_if(k_editors.begin(), k_editors.end(),
                     [&name](const Editor& each) { return each.name == name; });
    return found == k_editors.end() ? nullptr : found;
}

std::string url_encoded(std::string_view text)
{
    std::string encoded;
    for (const char c : text) {
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '/' || c == '-' || c == '_' ||
                              c == '.' || c == '~';
        encoded +=
            is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return encoded;
}

Error failed(const std::string& path)
{
    return fail(Error::Kind::io,
                fmt::format("{}: {}", sanitised(path), std::generic_category().message(errno)));
}

/// ssh_config without some of the names in its lines `Host`.
std::string without_hosts(const std::string& text, const std::vector<std::string>& names)
{
    constexpr std::string_view k_host = "Host ";
    std::vector<std::string> lines;
    for (const std::string_view line : split(text, "\n")) {
        std::string kept(line);
        if (line.starts_with(k_host)) {
            auto hosts = fields(line.substr(k_host.size()), " ");
            std::erase_if(hosts, [&](std::string_view host) {
                return std::find(names.begin(), names.end(), host) != names.end();
            });
            kept = fmt::format("{}{}", k_host, fmt::join(hosts, " "));
        }
        lines.push_back(std::move(kept));
    }
    return fmt::format("{}", fmt::join(lines, "\n"));
}

/// The files that ssh refuses if others may change them get no more than the user's own rights.
class PrivateMask {
public:
    PrivateMask()
        : m_before(::umask(S_IRWXG | S_IRWXO))
    {
    }
    PrivateMask(const PrivateMask&) = delete;
    PrivateMask& operator=(const PrivateMask&) = delete;
    ~PrivateMask() { ::umask(m_before); }

private:
    mode_t m_before;
};

/// The configuration of the editor's ssh, and gpuq's files that it is to include.
class SshFiles {
public:
    static Result<SshFiles> at(const std::string& config)
    {
        if (!config.empty()) {
            return SshFiles(config, Place::given);
        }
        const passwd* user = ::getpwuid(::getuid()); // as ssh does, which ignores $HOME
        if (user == nullptr || user->pw_dir == nullptr || user->pw_dir[0] != '/') {
            return fail(Error::Kind::missing, "this user has no home directory for ~/.ssh");
        }
        // It expands relative names in Include by $HOME, though.
        const char* const home = std::getenv("HOME");
        const bool is_usual = home == nullptr || std::string_view(home) == user->pw_dir;
        return SshFiles(std::string(user->pw_dir) + "/.ssh/config",
                        is_usual ? Place::usual : Place::other_home);
    }

    const std::string& config() const { return m_config; }
    std::string include_line() const
    {
        return m_place == Place::usual ? "Include gpuq/*.conf"
                                       : fmt::format("Include \"{}/*.conf\"", m_directory);
    }

    /// Replaces the file of a run, and removes old ones. Files of other runs lose its names: ssh
    /// takes the first file that has one.
    Result<void> write(const RunKey& key, const std::string& lines,
                       const std::vector<std::string>& names) const
    {
        if (m_directory.find_first_of("\"\n\\*?[") != std::string::npos) {
            return fail(Error::Kind::usage, fmt::format("ssh_config can't include files of {}",
                                                        sanitised(m_directory)));
        }
        const PrivateMask mask;
        for (const std::string& directory : {parent_of(m_directory), m_directory}) {
            if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
                return failed(directory);
            }
        }
        TRY(open_trusted_directory(m_directory));
        remove_old();
        take_names(key, names);
        TRY_ASSIGN(const OutputFile file,
                   OutputFile::at(fmt::format("{}/{}.conf", m_directory, key.text())));
        return file.write(lines);
    }

    Result<bool> includes() const
    {
        TRY_ASSIGN(const std::string text, content(m_config));
        const auto lines = split(text, "\n");
        return std::find(lines.begin(), lines.end(), include_line()) != lines.end();
    }

    /// Adds the line at the top: values given first are those that count.
    Result<void> include() const
    {
        TRY_ASSIGN(const std::string before, content(m_config));
        const PrivateMask mask;
        TRY_ASSIGN(const OutputFile file, OutputFile::at(m_config));
        return file.write(fmt::format("{}\n\n{}", include_line(), before));
    }

    /// The first of the names by which ssh finds the run; empty: none.
    Result<std::string> name_found(const std::vector<std::string>& names, const RunKey& key) const
    {
        if (::access(m_config.c_str(), F_OK) != 0) { // ssh would refuse it
            return std::string();
        }
        std::string wanted = "hostkeyalias " + host_key_alias(key);
        std::transform(wanted.begin(), wanted.end(), wanted.begin(), [](unsigned char c) {
            return std::tolower(c); // as ssh does
        });
        for (const std::string& name : names) {
            Subprocess ssh{.argv = {"ssh", "-G"}};
            if (m_place == Place::given) {
                ssh.argv.insert(ssh.argv.end(), {"-F", m_config});
            }
            ssh.argv.insert(ssh.argv.end(), {"--", name});
            TRY_ASSIGN(const Finished done,
                       gpuq::run(std::move(ssh), {.streams = Capture::Streams::apart}));
            if (done.error != 0) {
                return fail(Error::Kind::missing, "ssh is not installed");
            }
            const auto lines = fields(done.out, "\n");
            if (std::find(lines.begin(), lines.end(), wanted) != lines.end()) {
                return name;
            }
            if (done.status != 0) { // a file that ssh refuses
                print_message(trimmed(done.err));
            }
        }
        return std::string();
    }

private:
    /// Of ssh_config.
    enum class Place {
        usual,      ///< ~/.ssh/config
        other_home, ///< the same, but $HOME is another directory
        given,      ///< --ssh-config
    };

    SshFiles(std::string config, Place place)
        : m_config(std::move(config))
        , m_directory(parent_of(m_config) + "/gpuq")
        , m_place(place)
    {
    }

    static std::string parent_of(const std::string& path)
    {
        return path.substr(0, path.rfind('/'));
    }

    static Result<std::string> content(const std::string& path)
    {
        const auto file = open_trusted_file(path);
        if (!file) {
            return file.error().kind == Error::Kind::missing ? Result<std::string>("")
                                                             : Result<std::string>(file.error());
        }
        std::string text;
        std::array<char, 4096> buffer{};
        for (ssize_t size = 1; size > 0;
             text.append(buffer.data(), static_cast<std::size_t>(size))) {
            size = ::read(file->get(), buffer.data(), buffer.size());
            if (size < 0) {
                return failed(path);
            }
        }
        return text;
    }

    /// The files of runs in the directory.
    std::vector<std::filesystem::directory_entry> files() const
    {
        std::vector<std::filesystem::directory_entry> found;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(m_directory, error)) {
            const std::filesystem::path& path = entry.path();
            if (path.extension() == ".conf" && RunKey::parse(path.stem().string())) {
                found.push_back(entry);
            }
        }
        return found;
    }

    /// What can't be changed is left: the run can also be reached by its other names.
    void take_names(const RunKey& key, const std::vector<std::string>& names) const
    {
        for (const auto& entry : files()) {
            const std::string path = entry.path().string();
            const auto text = content(path);
            if (!text || entry.path().stem() == key.text()) {
                continue;
            }
            const std::string changed = without_hosts(*text, names);
            const auto file = changed == *text ? Result<OutputFile>(fail(Error::Kind::missing, ""))
                                               : OutputFile::at(path);
            if (file) {
                (void)file->write(changed);
            }
        }
    }

    /// Those of runs that nobody has opened for long.
    void remove_old() const
    {
        constexpr auto k_age = std::chrono::hours(24 * 30);
        for (const auto& entry : files()) {
            std::error_code error;
            const auto written = entry.last_write_time(error);
            if (!error && std::filesystem::file_time_type::clock::now() - written > k_age) {
                std::filesystem::remove(entry.path(), error);
            }
        }
    }

    std::string m_config, m_directory;
    Place m_place;
};

/// Whether a program that runs until it has started the editor was found.
bool execute(std::vector<std::string> argv)
{
    const auto done = gpuq::run({.argv = std::move(argv),
                                 .descriptors = {Subprocess::k_null, STDERR_FILENO, STDERR_FILENO}},
                                {.streams = Capture::Streams::none});
    return done && done->error == 0 && done->status == 0;
}

bool has_screen()
{
    const auto is_set = [](const char* name) {
        const char* value = std::getenv(name);
        return value != nullptr && value[0] != '\0';
    };
    return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
}

/// Opens the directory in an editor that is installed; nullptr: in none.
const Editor* opened_in(const std::string& wanted, const std::string& host,
                        const std::string& directory)
{
    for (const Editor& editor : k_editors) {
        if (!wanted.empty() && wanted != editor.name) {
            continue;
        }
        std::vector<std::string> argv{std::string(editor.program), "--remote",
                                      "ssh-remote+" + host};
        if (!directory.empty()) {
            argv.push_back(directory);
        }
        const bool by_program = !editor.program.empty() && execute(std::move(argv));
        const bool by_url =
            !by_program && !wanted.empty() && has_screen() &&
            execute({"xdg-open", editor_url(std::string(editor.name), host, directory)});
        if (by_program || by_url) {
            return &editor;
        }
    }
    return nullptr;
}

} // namespace

std::vector<std::string> editor_names(std::string id, const std::string& called, const RunKey& key)
{
    std::vector<std::string> names{std::move(id)};
    if (called != "last") { // another run tomorrow
        names.push_back(called);
    }
    names.push_back(key.text());
    return names;
}

Result<Editing> editing_from(const Options& options, const std::vector<std::string>& arguments)
{
    Editing editing;
    if (arguments.size() > 2) {
        return fail(Error::Kind::usage, "one run and one directory: gpuq code RUN DIR");
    }
    if (!arguments.empty()) {
        editing.run = arguments[0];
    }
    if (arguments.size() == 2) {
        editing.directory = arguments[1];
    }
    editing.editor = options.value("editor").value_or("");
    editing.ssh_config = options.value("ssh-config").value_or("");
    editing.yes = options.has("yes");
    if (!editing.editor.empty() && find_editor(editing.editor) == nullptr) {
        return fail(Error::Kind::usage, fmt::format("--editor: '{}' is not one of {}",
                                                    sanitised(editing.editor), k_editor_names));
    }
    if (!editing.directory.empty() && !editing.directory.starts_with('/')) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}': the directory on the node needs an absolute path",
                                sanitised(editing.directory)));
    }
    if (!editing.ssh_config.empty()) {
        editing.ssh_config = std::filesystem::absolute(editing.ssh_config).lexically_normal();
    }
    return editing;
}

std::string editor_url(const std::string& editor, const std::string& host,
                       const std::string& directory)
{
    const Editor* const found = find_editor(editor);
    if (found == nullptr) {
        return {};
    }
    if (found->program.empty()) {
        return fmt::format("{}://connect#type=ssh&deploy=true&host={}&port=22{}{}", found->scheme,
                           host, directory.empty() ? "" : "&projectPath=", url_encoded(directory));
    }
    return fmt::format("{}://vscode-remote/ssh-remote+{}{}", found->scheme, host,
                       directory.empty() ? "/" : url_encoded(directory));
}

Result<int> open_editor(const Editing& editing, const SshHost& host)
{
    TRY_ASSIGN(const std::string lines, ssh_config(host));
    TRY_ASSIGN(const SshFiles files, SshFiles::at(editing.ssh_config));
    const std::vector<std::string> names = host_names(host);
    TRY(files.write(host.key, lines, names));
    TRY_ASSIGN(std::string name, files.name_found(names, host.key));
    TRY_ASSIGN(const bool is_included, files.includes());
    if (name.empty() && !is_included) {
        TRY_ASSIGN(const bool agreed,
                   editing.yes ? Result<bool>(true)
                               : confirmed(fmt::format("add the line '{}' at the top of {}",
                                                       files.include_line(), files.config()),
                                           fmt::format("{} does not include gpuq's files: add the "
                                                       "line '{}' at its top, or use --yes",
                                                       files.config(), files.include_line())));
        if (!agreed) {
            return static_cast<int>(exit_status_of(Error::Kind::usage));
        }
        TRY(files.include());
        TRY_ASSIGN(name, files.name_found(names, host.key));
    }
    if (name.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("ssh -G {} does not find the run, although {} includes it: another "
                                "entry for that name comes first, or ssh refuses the file",
                                names.front(), files.config()));
    }
    const Editor* const opened = opened_in(editing.editor, name, editing.directory);
    const std::string url =
        editor_url(!editing.editor.empty() ? editing.editor : "code", name, editing.directory);
    if (editing.json) {
        TRY(print_text(report::json_document(
            {{"host", name},
             {"url", url},
             {"editor", opened != nullptr ? report::Json(opened->name) : report::Json()}})));
        return 0;
    }
    if (opened == nullptr) {
        print_message(
            editing.editor.empty()
                ? fmt::format("none of these editors is installed here: {}", k_editor_names)
                : fmt::format("{} is not installed here, or did not start", editing.editor));
        TRY(print_line(url));
    }
    print_message(fmt::format("the run is host {} for ssh and editors, while it runs", name));
    return 0;
}

} // namespace gpuq::cli
