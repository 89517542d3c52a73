// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/connect_keys.h"

#include "core/layout.h"
#include "runs/evidence.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <utility>

namespace gpuq {
namespace {

using nlohmann::json;

json pair_to_json(const SshKeyPair& pair)
{
    return {{"secret", pair.secret}, {"public", pair.public_line}};
}

SshKeyPair pair_from_json(const json& pair)
{
    return {pair.at("secret").get<std::string>(), pair.at("public").get<std::string>()};
}

Result<ConnectKeys> read_keys(Store& store, const RunKey& key)
{
    TRY_ASSIGN(const std::string text,
               store.read(layout::connect_file(key, layout::k_connect_keys)));
    return connect_keys_from_json(text);
}

/// One file decides: the first process to write it provides the keys for all.
Result<ConnectKeys> first_keys(Store& store, const RunKey& key,
                               const std::function<Result<SshKeyPair>()>& make)
{
    if (auto keys = read_keys(store, key); keys || keys.error().kind != Error::Kind::missing) {
        return keys;
    }
    TRY_ASSIGN(SshKeyPair user, make());
    TRY_ASSIGN(SshKeyPair host, make());
    const ConnectKeys keys{std::move(user), std::move(host)};
    const auto written =
        store.write_once(layout::connect_file(key, layout::k_connect_keys), to_json(keys));
    if (!written && written.error().kind != Error::Kind::busy) {
        return written.error();
    }
    return read_keys(store, key);
}

Result<void> write_files(Store& store, const RunKey& key, const ConnectKeys& keys)
{
    const std::pair<const char*, std::string> files[] = {
        {layout::k_connect_identity, keys.user.secret},
        {layout::k_connect_authorized, keys.user.public_line + "\n"},
        {layout::k_connect_host_key, keys.host.secret},
        {layout::k_connect_known_hosts,
         fmt::format("{} {}\n", host_key_alias(key), keys.host.public_line)},
    };
    for (const auto& [name, text] : files) {
        if (const std::string path = layout::connect_file(key, name); !store.size(path)) {
            TRY(store.write(path, text));
        }
    }
    return {};
}

} // namespace

std::string to_json(const ConnectKeys& keys)
{
    return json{{"schema", 1}, {"user", pair_to_json(keys.user)}, {"host", pair_to_json(keys.host)}}
               .dump() +
           "\n";
}

Result<ConnectKeys> connect_keys_from_json(std::string_view text)
{
    try {
        const json document = json::parse(text);
        if (document.at("schema") == 1) {
            return ConnectKeys{pair_from_json(document.at("user")),
                               pair_from_json(document.at("host"))};
        }
    } catch (const json::exception&) {
        // reported below
    }
    return fail(Error::Kind::usage,
                fmt::format("{}: not the keys of a run", layout::k_connect_keys));
}

std::string host_key_alias(const RunKey& key)
{
    return "gpuq-" + key.text();
}

Result<void> prepare_connect(Store& store, const RunKey& key,
                             const std::function<Result<SshKeyPair>()>& make)
{
    TRY_ASSIGN(const ConnectKeys keys, first_keys(store, key, make));
    TRY(write_files(store, key, keys));
    // The supervisor may have cleared the directory a moment before.
    if (read_ending(store, key)) {
        forget_connect_keys(store, key);
        return fail(Error::Kind::missing, "the run has ended");
    }
    return {};
}

void forget_connect_keys(Store& store, const RunKey& key)
{
    const auto names = store.list(layout::connect_dir(key));
    if (!names) {
        return;
    }
    for (const std::string& name : *names) {
        (void)store.remove(layout::connect_file(key, name));
    }
    (void)store.remove(layout::connect_dir(key));
}

void forget_active(Store& store, const RunKey& key)
{
    // Tickets stored elsewhere are removed by gpuq clean.
    (void)store.remove_tree(layout::run_dir(key) + "/credentials");
    forget_connect_keys(store, key);
    (void)store.remove(layout::active(key));
}

} // namespace gpuq
