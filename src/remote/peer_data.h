// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "wire/remote_frame.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Checks of data from the peer of `gpuq --host`. The peer may be hostile: no data from it is
/// executed, opened, connected to or printed before the check in this table. A frame that fails a
/// check ends the session with an error. No data is stored except the log that `logs --to` writes
/// to a file; output of programs and screens is passed through as by ssh.
///
// clang-format off
///     | data                       | checked by              | limits                              |
///     | type of a frame            | fault_in                | only types of that side             |
///     | Hello: version             | fault_in                | 1 to k_largest_version              |
///     | Hello: program, host       | is_machine_name         | 255 letters, digits, ._-+~          |
///     | Hello: input, signals      | Client::on_hello        | no more than was sent               |
///     | Hello, InputTaken: room    | ClientInput             | at most k_input_room is used        |
///     | Output: offset, size       | ClientOutput::check     | contiguous, k_output_room unread    |
///     | Output: bytes              | ClientOptions::shown_as | lines and colours, from verbs that  |
///     |                            |                         | print lines, on a terminal          |
///     | InputTaken, SignalTaken    | Client::on_frame        | no more than was sent               |
///     | Following: key             | RunKey::parse           | the form of a key                   |
///     | Following: link            | fault_in                | 0 to k_largest_link                 |
///     | SshTarget                  | Client::on_frame        | only if requested                   |
///     | SshTarget: key, user       | RunKey, is_user_name    | 64 letters, digits, ._-@+           |
///     | Exit: status               | fault_in                | 0 to 255                            |
///     | Exit: out, err             | Client::on_exit         | all of it has been received         |
///     | Failure: kind              | wire::remote::Decoder   | unknown kinds are `internal`        |
///     | Failure, StreamClosed: text  | peer_text               | one line, k_most_cells              |
///     | Beat                       | Client::on_frame        | one that the client sent            |
///     | Stream...: stream          | Client::on_frame        | opened by the client                |
///     | StreamBytes: size          | Streams::on_bytes       | k_stream_room unread                |
///     | text before the marker     | Greeting, last_message    | 256 KiB kept, one line printed      |
///     | stderr of ssh              | peer_text, last_message   | k_most_lines lines                  |
///     | question of the host       | client_login, sanitised | one line, k_longest_shown           |
///
///     | argument of serve          | unescape_argument           | 4096 hexadecimal digits             |
///     | Open: session              | is_session_name         | 32 hexadecimal digits               |
///     | Open: connection           | Holder::is_late         | not older than the newest one       |
///     | Start: forwards            | is_destination          | HOST:PORT, k_most_forwards          |
///     | Start: variables           | may_pass                | names in a fixed list               |
///     | Start: words, folder       |                         | the client is the same user         |
///     | Input, Taken, Signal, Dial | Holder, HeldVerb        | contiguous with earlier ones        |
// clang-format on
namespace gpuq::remote {

constexpr int k_largest_version = 1 << 16;
constexpr int k_largest_link = 1 << 20;
constexpr std::size_t k_most_cells = 300; ///< printed length of a text from the peer
constexpr std::size_t k_most_lines = 100; ///< printed lines of ssh and the login banner

enum class Sender { client, server };

/// Why `frame` is invalid from that side; nullopt if it is well-formed. Offsets and counts must
/// still be compared with the data that was sent.
std::optional<std::string_view> fault_in(const wire::remote::Frame& frame, Sender sender);

/// Prepares text for display: on one line, sanitised, clipped to `most` cells.
std::string peer_text(std::string_view bytes, std::size_t most = k_most_cells);

/// True for a host name or version: 1 to 255 letters, digits and `._-+~`.
bool is_machine_name(std::string_view text);

/// True for a user name that ssh_config, ssh and a shell cannot misinterpret: 1 to 64 letters,
/// digits and `._-@+`, without a leading `-`.
bool is_user_name(std::string_view text);

} // namespace gpuq::remote
