// Unix stream sockets with deadlines, for both ends of the admin socket.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace sluice::admin {

using Deadline = std::chrono::steady_clock::time_point;

// Waits until `fd` is ready for `events` (of poll). False: the deadline passed, or `stop` (an
// eventfd, or -1) became readable.
bool wait_ready(int fd, short events, int stop, Deadline deadline);

// Reads into *buffer until it contains a line, and moves that to *line. False: end of input,
// deadline, stop, or a line longer than `limit`.
bool read_line(int fd, int stop, Deadline deadline, size_t limit, std::string* buffer,
               std::string* line);
bool write_all(int fd, int stop, Deadline deadline, std::string_view text);

// A non-blocking socket that listens at `path` with mode 0600; see Server::start.
Result<FileDescriptor> listen_at(const std::string& path);
Result<FileDescriptor> connect_to(const std::string& path);
// The peer's user; -1: unknown.
uid_t peer_user(int fd);

}  // namespace sluice::admin
