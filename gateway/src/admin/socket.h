// Unix stream sockets with deadlines, for both ends of the admin socket.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace sluice::admin {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

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
Result<Descriptor> listen_at(const std::string& path);
Result<Descriptor> connect_to(const std::string& path);
// The peer's user; -1: unknown.
uid_t peer_user(int fd);

}  // namespace sluice::admin
