// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/config.h"

#include <gtest/gtest.h>

#include <map>

namespace gpuq::cli {
namespace {

using Texts = std::map<std::string, std::string>;
using Strings = std::vector<std::string>;

SettingSources from(Texts variables, Texts files)
{
    SettingSources sources;
    sources.variable = [variables = std::move(variables)](const std::string& name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    sources.file = [files = std::move(files)](const std::string& path) -> Result<std::string> {
        const auto found = files.find(path);
        if (found == files.end()) {
            return fail(Error::Kind::missing, path);
        }
        if (found->second == "unreadable") {
            return fail(Error::Kind::io, path + ": Permission denied");
        }
        return found->second;
    };
    return sources;
}

TEST(Settings, AreReadFromAFile)
{
    const auto settings = settings_in("state_dir: /scratch/%u/gpuq\ncluster: local\n"
                                      "container: [podman, run, \"{image}\"]\n",
                                      "c.yaml");
    EXPECT_EQ(*settings,
              (Settings{"/scratch/%u/gpuq", "local", Strings{"podman", "run", "{image}"}}));
    EXPECT_EQ(*settings_in("", "c.yaml"), Settings{});
}

TEST(Settings, SayWhichLoginHostIsMeant)
{
    const Texts files = {
        {k_site_config,
         "host: login.example.org\nremote: /opt/gpuq/bin/gpuq\nhost_patience: 1h\n"}};
    const auto settings = load_settings(from({{"GPUQ_HOST", "login2"}}, files));
    ASSERT_TRUE(settings);
    EXPECT_EQ(settings->host, "login2");
    EXPECT_EQ(settings->remote_program, "/opt/gpuq/bin/gpuq");
    EXPECT_EQ(settings->host_patience, std::chrono::hours{1});
    EXPECT_EQ(load_settings(from({{"GPUQ_HOST_PATIENCE", "30s"}}, files))->host_patience,
              std::chrono::seconds{30});
    EXPECT_FALSE(load_settings(from({{"GPUQ_HOST_PATIENCE", "long"}}, files)));
}

TEST(Settings, ChooseATransport)
{
    const Texts files = {{k_site_config, "transport: openssh\n"}};
    EXPECT_EQ(load_settings(from({}, files))->transport, "openssh");
    EXPECT_EQ(load_settings(from({{"GPUQ_TRANSPORT", "libssh"}}, files))->transport, "libssh");
    EXPECT_FALSE(load_settings(from({{"GPUQ_TRANSPORT", "ssh"}}, files)));
    EXPECT_EQ(settings_in("transport: mosh\n", "c.yaml").error().text,
              "c.yaml:1:12: transport: 'mosh' is not auto, libssh or openssh");
}

TEST(Settings, HaveASnapshotPolicy)
{
    const Texts files = {{k_site_config, "snapshot: never\n"}};
    EXPECT_EQ(load_settings(from({}, files))->snapshot, SnapshotPolicy::never);
    EXPECT_EQ(load_settings(from({{"GPUQ_SNAPSHOT", "always"}}, files))->snapshot,
              SnapshotPolicy::always);
    EXPECT_EQ(settings_in("snapshot: auto\n", "c.yaml")->snapshot, SnapshotPolicy::automatic);
    EXPECT_EQ(settings_in("snapshot: yes\n", "c.yaml").error().text,
              "c.yaml:1:11: snapshot: 'yes' is not auto, always or never");
}

TEST(Settings, HaveACommandForNotices)
{
    const Texts files = {{k_site_config, "notify: [notify-send, '{text}']\n"}};
    EXPECT_EQ(load_settings(from({}, files))->notify, (Strings{"notify-send", "{text}"}));
    EXPECT_EQ(load_settings(from({{"GPUQ_NOTIFY", "mail 'a b'"}}, files))->notify,
              (Strings{"mail", "a b"}));
    EXPECT_EQ(settings_in("notify: notify-send\n", "c.yaml").error().text,
              "c.yaml:1:9: notify must be a list of words: [a, b]");
}

TEST(Settings, HaveATheme)
{
    const Texts files = {{k_site_config, "theme: 256\n"}};
    EXPECT_EQ(load_settings(from({}, files))->theme, ColourTheme::palette);
    EXPECT_EQ(load_settings(from({{"GPUQ_THEME", "truecolor"}}, files))->theme,
              ColourTheme::direct);
    EXPECT_EQ(settings_in("theme: '16'\n", "c.yaml")->theme, ColourTheme::basic);
    EXPECT_EQ(settings_in("theme: dark\n", "c.yaml").error().text,
              "c.yaml:1:8: theme: 'dark' is not auto, 16, 256 or truecolor");
}

TEST(Settings, TheDirectoryOfOverviewsIsAnAbsolutePathOrOff)
{
    const Texts files = {{k_site_config, "overview_dir: /srv/gpuq\n"}};
    EXPECT_EQ(load_settings(from({}, files))->overview_dir, "/srv/gpuq");
    EXPECT_EQ(load_settings(from({{"GPUQ_OVERVIEW_DIR", "off"}}, files))->overview_dir, "off");
    EXPECT_EQ(settings_in("overview_dir: here\n", "c.yaml").error().text,
              "c.yaml:1:15: overview_dir: 'here' is neither an absolute path nor off");
}

TEST(Settings, NameTheNearestOneForAMistake)
{
    EXPECT_EQ(
        settings_in("state-dir: /x\n", "c.yaml").error().text,
        "c.yaml:1:1: unknown name 'state-dir' (did you mean 'state_dir'?); there are: "
        "state_dir, cluster, container, keep, detach_key, direct, handover, credentials_dir, "
        "aklog, token_command, host, remote, host_patience, transport, snapshot, notify, theme, "
        "overview_dir");
    EXPECT_EQ(settings_in("container: apptainer\n", "c.yaml").error().text,
              "c.yaml:1:12: container must be a list of words: [a, b]");
    EXPECT_EQ(settings_in("state_dir: ''\n", "c.yaml").error().text,
              "c.yaml:1:12: state_dir is empty");
}

TEST(Settings, ComeFromTheFirstPlaceThatHasThem)
{
    const Texts files = {{"/home/ann/.config/gpuq/config.yaml", "state_dir: /own\ncluster: own\n"},
                         {k_site_config, "state_dir: /site\ncluster: site\ncontainer: [run]\n"}};
    EXPECT_EQ(*load_settings(from({{"HOME", "/home/ann"}, {"GPUQ_STATE_DIR", "/var"}}, files)),
              (Settings{"/var", "own", Strings{"run"}}));
    EXPECT_EQ(*load_settings(from({{"HOME", "/home/ann"}, {"GPUQ_CONTAINER", "env 'A B'"}}, files)),
              (Settings{"/own", "own", Strings{"env", "A B"}}));
    EXPECT_EQ(*load_settings(from({{"GPUQ_STATE_DIR", ""}}, files)),
              (Settings{"/site", "site", Strings{"run"}}));
    EXPECT_EQ(*load_settings(from({}, {})), Settings{});
}

TEST(Settings, KeepIsATimeASizeOrBothInAnyPlace)
{
    const Retention both{std::chrono::days(30), 5ULL << 30U};
    EXPECT_EQ(settings_in("keep: 30d, 5G\n", "c.yaml")->keep, both);
    EXPECT_EQ(settings_in("keep: 30\n", "c.yaml").error().text,
              "c.yaml:1:7: keep: invalid retention '30': write it like 30d, 5G");
    const Texts files = {{k_site_config, "keep: 30d, 5G\n"}};
    EXPECT_EQ(load_settings(from({}, files))->keep, both);
    EXPECT_EQ(load_settings(from({{"GPUQ_KEEP", "1d"}}, files))->keep,
              (Retention{std::chrono::days(1), std::nullopt}));
    EXPECT_EQ(load_settings(from({{"GPUQ_KEEP", "x"}}, files)).error().kind, Error::Kind::usage);
}

TEST(Settings, HaveTheKeysThatDetach)
{
    const Texts files = {{k_site_config, "detach_key: '%x'\n"}};
    EXPECT_EQ(load_settings(from({}, files))->detach_key, (DetachKey{'%', 'x'}));
    EXPECT_EQ(load_settings(from({{"GPUQ_DETACH_KEY", "off"}}, files))->detach_key,
              (DetachKey{.off = true}));
    EXPECT_EQ(settings_in("detach_key: ~d\n", "c.yaml")->detach_key, DetachKey{});
    EXPECT_EQ(settings_in("detach_key: ctrl-p\n", "c.yaml").error().text,
              "c.yaml:1:13: detach_key: 'ctrl-p' is neither off nor two characters to type after "
              "Enter, such as ~d");
}

TEST(Settings, SayWhetherARunOnThisNodeIsReachedDirectly)
{
    const Texts files = {{k_site_config, "direct: no\n"}};
    EXPECT_EQ(load_settings(from({}, {}))->direct, std::nullopt);
    EXPECT_EQ(load_settings(from({}, files))->direct, Direct::no);
    EXPECT_EQ(load_settings(from({{"GPUQ_DIRECT", "yes"}}, files))->direct, Direct::node);
    EXPECT_EQ(settings_in("direct: network\n", "c.yaml")->direct, Direct::network);
    EXPECT_EQ(load_settings(from({{"GPUQ_DIRECT", "1"}}, {})).error().text,
              "GPUQ_DIRECT: '1' is not yes, no or network");
    EXPECT_EQ(settings_in("direct: perhaps\n", "c.yaml").error().text,
              "c.yaml:1:9: direct: 'perhaps' is not yes, no or network");
}

TEST(Settings, HaveTheAgeOfARunAtItsHandover)
{
    const Texts files = {{k_site_config, "handover: 1m\n"}};
    EXPECT_EQ(load_settings(from({}, files))->handover, std::chrono::minutes{1});
    EXPECT_EQ(load_settings(from({{"GPUQ_HANDOVER", "2s"}}, files))->handover,
              std::chrono::seconds{2});
    EXPECT_TRUE(load_settings(from({{"GPUQ_HANDOVER", "soon"}}, {}))
                    .error()
                    .text.starts_with("GPUQ_HANDOVER: 'soon' is not a time: "));
}

TEST(Settings, FollowXdgConfigHome)
{
    const Texts files = {{"/xdg/gpuq/config.yaml", "cluster: xdg\n"},
                         {"/home/ann/.config/gpuq/config.yaml", "cluster: home\n"}};
    const auto cluster = [&](const std::string& directory) {
        return load_settings(from({{"HOME", "/home/ann"}, {"XDG_CONFIG_HOME", directory}}, files))
            ->cluster;
    };
    EXPECT_EQ(cluster("/xdg"), "xdg");
    EXPECT_EQ(cluster("relative"), "home");
    EXPECT_EQ(cluster(""), "home");
}

TEST(Settings, AreNeverHalfRead)
{
    EXPECT_EQ(load_settings(from({}, {{k_site_config, "unreadable"}})).error().kind,
              Error::Kind::io);
    // A broken file is an error even if a source of higher precedence has the setting: the next
    // setting taken from the file would fail.
    EXPECT_EQ(
        load_settings(from({{"GPUQ_STATE_DIR", "/x"}}, {{k_site_config, "a: b\n"}})).error().kind,
        Error::Kind::usage);
    EXPECT_EQ(load_settings(from({{"GPUQ_CONTAINER", "'"}}, {})).error().text,
              "GPUQ_CONTAINER: a ' is never closed in: '");
    EXPECT_FALSE(load_settings(from({{"GPUQ_CONTAINER", "  "}}, {})));
}

} // namespace
} // namespace gpuq::cli
